import type { mongo } from 'mongoose';
import type { Plan } from '../domain/plan.js';
import type { Owed, ScheduleDocument } from '../domain/schedule.js';
import { isWriteReport } from './faults.js';
import type { Collections } from './models.js';

/** What was decided about a schedule, from the document as it was read. */
export interface Decision {
  schedule: Pick<ScheduleDocument, '_id' | 'decision'>;
  plan: Plan;
}

/** Whose decision took effect, and which documents the server would not write, for whatever is in them. */
export interface Decisiveness {
  won: Set<string>;
  refused: Map<string, Error>;
}

/**
 * Stores decisions, each only if nobody has decided since the document was read: whatever a decision rests on changes
 * `decision`. Deciding without storing would let a second worker decide differently a moment later.
 */
export async function decideSchedules(
  c: Collections,
  token: string,
  decisions: readonly Decision[],
): Promise<Decisiveness> {
  const statements = decisions.map(({ schedule, plan }) => {
    const { cancel: _, ...fields } = plan;
    return {
      updateOne: {
        filter: { _id: schedule._id, decision: schedule.decision },
        update: { $set: { ...fields, decision: token } },
      },
    };
  });
  const ids = decisions.map(({ schedule }) => schedule._id);
  const refused = new Map<string, Error>();
  try {
    const { matchedCount } = await c.schedules.bulkWrite(statements, { ordered: false });
    if (matchedCount === ids.length) return { won: new Set(ids), refused };
  } catch (error) {
    if (!isWriteReport(error)) throw error;
    for (const { index, errmsg } of [error.writeErrors].flat()) {
      refused.set(ids[index] ?? '', new Error(errmsg ?? 'refused by the server'));
    }
  }
  const won = await c.schedules
    .find({ _id: { $in: ids }, decision: token }, { projection: { _id: 1 } })
    .toArray();
  return { won: new Set(won.map(({ _id }) => _id)), refused };
}

/** Takes what was carried out off the list. Whoever puts it back from an older reading finds the job there already. */
export async function dropOwed(
  c: Collections,
  done: readonly { scheduleId: string; kind: Owed['kind']; ids: readonly string[] }[],
): Promise<void> {
  await c.schedules.bulkWrite(
    done.map(({ scheduleId, kind, ids }) => ({
      updateOne: {
        filter: { _id: scheduleId },
        // A skip and a run of one occurrence have the same id.
        update: { $pull: pull(kind, ids) },
      },
    })),
    { ordered: false },
  );
}

/** The driver's types cannot say a condition on one kind of a union. */
function pull(kind: Owed['kind'], ids: readonly string[]): mongo.PullOperator<ScheduleDocument> {
  return { owed: { kind, id: { $in: [...ids] } } } as unknown as mongo.PullOperator<ScheduleDocument>;
}

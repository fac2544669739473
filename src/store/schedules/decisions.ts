import type { mongo } from 'mongoose';
import type { Plan } from '../../domain/schedule/plan.js';
import type { PendingEntry, ScheduleDocument } from '../../domain/schedule/schedule.js';
import { isPartialWriteError } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';

/** A plan for a schedule, made from the document as it was read. */
export interface Decision {
  schedule: Pick<ScheduleDocument, '_id' | 'decision'>;
  plan: Plan;
}

/** By schedule id. Decisions that are in neither lost to another process. */
export interface DecisionWriteResult {
  stored: Set<string>;
  /** Rejected by the server, because of the content of the document. */
  rejected: Map<string, Error>;
}

/**
 * Stores each decision, unless the schedule was decided on or changed since it was read: every such write changes
 * `decision`. Without storing it, a second worker could decide differently a moment later.
 */
export async function storeDecisions(
  c: Collections,
  token: string,
  decisions: readonly Decision[],
): Promise<DecisionWriteResult> {
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
  const rejected = new Map<string, Error>();
  try {
    const { matchedCount } = await c.schedules.bulkWrite(statements, { ordered: false });
    if (matchedCount === ids.length) return { stored: new Set(ids), rejected };
  } catch (error) {
    if (!isPartialWriteError(error)) throw error;
    for (const { index, errmsg } of [error.writeErrors].flat()) {
      rejected.set(ids[index] ?? '', new Error(errmsg ?? 'rejected by the server'));
    }
  }
  const stored = await c.schedules
    .find({ _id: { $in: ids }, decision: token }, { projection: { _id: 1 } })
    .toArray();
  return { stored: new Set(stored.map(({ _id }) => _id)), rejected };
}

/** Removes entries that were executed. A process that adds one back, from an older read, will find that its job exists. */
export async function removePending(
  c: Collections,
  done: readonly { scheduleId: string; kind: PendingEntry['kind']; ids: readonly string[] }[],
): Promise<void> {
  await c.schedules.bulkWrite(
    done.map(({ scheduleId, kind, ids }) => ({
      updateOne: {
        filter: { _id: scheduleId },
        // With the kind, because a skip and a run of one occurrence have the same id.
        update: { $pull: pull(kind, ids) },
      },
    })),
    { ordered: false },
  );
}

/** The driver's types do not allow a condition on one member of a union. */
function pull(kind: PendingEntry['kind'], ids: readonly string[]): mongo.PullOperator<ScheduleDocument> {
  return { pending: { kind, id: { $in: [...ids] } } } as unknown as mongo.PullOperator<ScheduleDocument>;
}

import type { Plan } from '../domain/plan.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { Collections } from './models.js';

/** What was decided about a schedule, from the document as it was read. */
export interface Decision {
  schedule: Pick<ScheduleDocument, '_id' | 'decision'>;
  plan: Plan;
}

/**
 * Stores decisions, each only if nobody has decided since the document was read: whatever a decision rests on changes
 * `decision`. Deciding without storing would let a second worker decide differently a moment later. Returns the
 * ids of those that took effect.
 */
export async function decideSchedules(
  c: Collections,
  token: string,
  decisions: readonly Decision[],
): Promise<Set<string>> {
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
  const { matchedCount } = await c.schedules.bulkWrite(statements, { ordered: false });
  if (matchedCount === ids.length) return new Set(ids);
  const won = await c.schedules
    .find({ _id: { $in: ids }, decision: token }, { projection: { _id: 1 } })
    .toArray();
  return new Set(won.map(({ _id }) => _id));
}

/** Takes what was carried out off the list. Whoever puts it back from an older reading finds the job there already. */
export async function dropOwed(
  c: Collections,
  done: readonly { scheduleId: string; ids: readonly string[] }[],
): Promise<void> {
  await c.schedules.bulkWrite(
    done.map(({ scheduleId, ids }) => ({
      updateOne: { filter: { _id: scheduleId }, update: { $pull: { owed: { id: { $in: [...ids] } } } } },
    })),
    { ordered: false },
  );
}

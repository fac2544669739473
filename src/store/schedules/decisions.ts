import type { mongo } from 'mongoose';
import type { Plan } from '../../domain/schedule/plan.js';
import type { PendingEntry, ScheduleDocument } from '../../domain/schedule/schedule.js';
import { isResultUnknown, rejectedWrites } from '../mongo-errors.js';
import type { Collections } from '../schema/collections.js';

/** A plan for a schedule, based on the document as it was read. */
export interface Decision {
  schedule: Pick<ScheduleDocument, '_id' | 'decision'>;
  plan: Plan;
}

/** By schedule id. A decision in neither of them lost to another process. */
export interface DecisionWriteResult {
  stored: Set<string>;
  /** The server rejected the content of the document. */
  rejected: Map<string, Error>;
}

/**
 * Stores each decision, unless the schedule was decided on or changed since it was read: every such write changes
 * `decision`. A decision that is executed without being stored would let a second worker decide differently.
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
    for (const write of rejectedWrites(error)) rejected.set(ids[write.index] ?? '', write.error);
  }
  const stored = await c.schedules
    .find({ _id: { $in: ids }, decision: token }, { projection: { _id: 1 } })
    .toArray();
  return { stored: new Set(stored.map(({ _id }) => _id)), rejected };
}

/** What decides whether another job may become the current run of a schedule. */
export interface CurrentRun extends Pick<ScheduleDocument, 'active' | 'decision'> {
  scheduleId: string;
  /** Runs are decided that have no job yet. */
  hasPlannedRuns: boolean;
}

/** Null if the schedule is not stored. Fields of another type, which another program wrote, count as empty. */
export async function findCurrentRun(c: Collections, scheduleId: string): Promise<CurrentRun | null> {
  const found = await c.schedules.findOne<{ active: unknown; decision: string | null; pending: unknown }>(
    { _id: scheduleId },
    { projection: { active: 1, decision: 1, 'pending.kind': 1 } },
  );
  if (found === null) return null;
  const { active, decision, pending } = found;
  const planned: readonly { kind?: unknown }[] = Array.isArray(pending) ? pending : [];
  return {
    scheduleId,
    active: typeof active === 'string' ? active : null,
    decision,
    hasPlannedRuns: planned.some(({ kind }) => kind === 'run'),
  };
}

/** Makes a job the current run. False if the schedule was decided on or changed since it was read. */
export async function storeCurrentRun(
  c: Collections,
  { scheduleId, decision }: CurrentRun,
  active: string,
  token: string,
): Promise<boolean> {
  try {
    const update = { $set: { active, decision: token } };
    return (await c.schedules.updateOne({ _id: scheduleId, decision }, update)).matchedCount === 1;
  } catch (error) {
    if (!isResultUnknown(error)) throw error;
  }
  return (
    (await c.schedules.findOne({ _id: scheduleId, decision: token }, { projection: { _id: 1 } })) !== null
  );
}

/** Removes executed entries. If a process executes one again from an older read, it finds that the job exists. */
export async function removePending(
  c: Collections,
  done: readonly { scheduleId: string; kind: PendingEntry['kind']; ids: readonly string[] }[],
): Promise<void> {
  await c.schedules.bulkWrite(
    done.map(({ scheduleId, kind, ids }) => ({
      updateOne: {
        filter: { _id: scheduleId },
        // By kind and id: a skip and a run of one occurrence have the same id.
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

import { randomUUID } from 'node:crypto';
import { DEFAULT_QUEUE, type ResolvedOptions } from '../../config/options.js';
import type { Clock } from '../../domain/clock.js';
import { type JobDocument, newJob } from '../../domain/job/job.js';
import { groupBy } from '../../domain/language.js';
import { runnableNow } from '../../domain/schedule/overlap.js';
import { skipsOf } from '../../domain/schedule/pending.js';
import {
  jitterOf,
  type PendingRun,
  type PendingSkip,
  type ScheduleDocument,
} from '../../domain/schedule/schedule.js';
import type { JobActions } from '../../jobs/job-actions.js';
import type { EventBus } from '../../runtime/event-bus.js';
import type { Store } from '../../store/store.js';
import type { WorkerEngine } from '../../worker/engine.js';
import type { PlannedSchedule } from './schedule-planner.js';

export interface PlanExecutorDeps {
  store: Pick<Store, 'removePending' | 'enqueueMany' | 'recordSkips'>;
  clock: Clock;
  events: EventBus;
  options: Pick<ResolvedOptions, 'retention'>;
  jobs: Pick<JobActions, 'cancel'>;
  engine: Pick<WorkerEngine, 'wake'>;
}

/**
 * Executes stored plans: inserts the jobs of pending runs, records skips, and removes both from the schedule. Any
 * process may execute a plan, even again: the job id is derived from the occurrence, so there is never a second job.
 */
export class PlanExecutor {
  readonly #deps: PlanExecutorDeps;

  constructor(deps: PlanExecutorDeps) {
    this.#deps = deps;
  }

  /** Returns the jobs it inserted. */
  async execute(planned: readonly PlannedSchedule[], now: Date): Promise<JobDocument[]> {
    const runs = planned.flatMap(({ schedule, plan }) =>
      runnableNow(schedule, plan).map((run) => ({ schedule, run })),
    );
    const { inserted, failed } = await this.#insert(
      runs.map(({ schedule, run }) => createOccurrenceJob(schedule, run, now)),
    );
    await this.#removePending(
      'run',
      runs.filter(({ run }) => !failed.has(run.id)).map(({ schedule, run }) => [schedule._id, run.id]),
    );
    await this.recordSkipsAndCancels(planned);
    return inserted;
  }

  /** Executes everything in the plans except their runs. */
  async recordSkipsAndCancels(planned: readonly PlannedSchedule[]): Promise<void> {
    await this.#recordSkips(
      planned.flatMap(({ schedule, plan: { pending } }) =>
        skipsOf(pending).map((skip) => ({ schedule, skip })),
      ),
    );
    for (const { plan } of planned) {
      if (plan.cancel === null) continue;
      await this.#deps.jobs.cancel(plan.cancel, 'replaced by a newer run of its schedule');
    }
  }

  /** Inserts the job of a run that is not planned. Throws if it cannot be inserted. */
  async insertRun(schedule: ScheduleDocument, run: PendingRun, now: Date): Promise<void> {
    const [result] = await this.#deps.store.enqueueMany([createOccurrenceJob(schedule, run, now)]);
    if (result === undefined || 'error' in result)
      throw result?.error ?? new Error(`no result for ${run.id}`);
    this.#deps.engine.wake();
  }

  async removeRun(schedule: ScheduleDocument, runId: string): Promise<void> {
    await this.#removePending('run', [[schedule._id, runId]]);
  }

  /** A run whose job cannot be inserted stays pending and is retried. It does not affect the others. */
  async #insert(jobs: readonly JobDocument[]): Promise<{ inserted: JobDocument[]; failed: Set<string> }> {
    const { store, events, clock, engine } = this.#deps;
    const inserted: JobDocument[] = [];
    const failed = new Set<string>();
    if (jobs.length === 0) return { inserted, failed };
    const results = await store.enqueueMany(jobs).catch((error: unknown) => {
      events.measure('enqueue', { inserted: 0, failed: jobs.length });
      throw error;
    });
    for (const [index, job] of jobs.entries()) {
      const result = results[index];
      if (result === undefined || 'error' in result) {
        failed.add(job._id);
        events.reportError('insert job', result?.error ?? new Error('no result'), { subject: job._id });
      } else if (!result.duplicate) inserted.push(job);
    }
    events.measure('enqueue', { inserted: inserted.length, failed: failed.size });
    for (const { _id: jobId, schedule, scheduledFor } of inserted) {
      if (schedule === null || scheduledFor === null) continue;
      const late = clock.now().getTime() - scheduledFor.getTime();
      events.emit('schedule:due', { scheduleId: schedule, jobId, scheduledFor, late });
    }
    if (inserted.length > 0) engine.wake();
    return { inserted, failed };
  }

  /** Kept as long as failed jobs. A skip that MongoDB rejects is reported and dropped: a retry would be rejected, too. */
  async #recordSkips(skips: readonly { schedule: ScheduleDocument; skip: PendingSkip }[]): Promise<void> {
    const { store, events, options } = this.#deps;
    if (skips.length === 0) return;
    const rejected = await store.recordSkips(
      skips.map(({ schedule, skip: { kind: _, id, ...skip } }) => ({
        _id: id,
        scheduleId: schedule._id,
        ...skip,
        expiresAt: new Date(skip.since.getTime() + options.retention.failed),
      })),
    );
    for (const [id, error] of rejected) events.reportError('record skip', error, { subject: id });
    await this.#removePending(
      'skip',
      skips.map(({ schedule, skip }) => [schedule._id, skip.id]),
    );
    for (const { schedule, skip } of skips) {
      const { at: from, until, count, reason, runningFor } = skip;
      events.emit('schedule:skipped', { scheduleId: schedule._id, from, until, count, reason, runningFor });
    }
  }

  async #removePending(kind: 'run' | 'skip', entries: readonly (readonly [string, string])[]): Promise<void> {
    if (entries.length === 0) return;
    const bySchedule = groupBy(entries, ([scheduleId]) => scheduleId);
    await this.#deps.store.removePending(
      [...bySchedule].map(([scheduleId, group]) => ({ scheduleId, kind, ids: group.map(([, id]) => id) })),
    );
  }
}

/** The job of an occurrence. It is due at the time of the occurrence, plus jitter, even if it is inserted later. */
export function createOccurrenceJob(
  schedule: ScheduleDocument,
  { id, at }: PendingRun,
  now: Date,
): JobDocument {
  const { taskType, queue, priority, payload, retries, timeout, maxRunningTime, userId, jitter } = schedule;
  const nextRunAt = new Date(at.getTime() + jitterOf(id, jitter));
  const job = newJob({
    _id: id,
    taskType,
    queue: queue ?? DEFAULT_QUEUE,
    priority,
    payload,
    nextRunAt,
    createdAt: now,
    retries,
    timeout,
    maxRunningTime,
    schedule: schedule._id,
    scheduledFor: at,
    userId,
    nonce: randomUUID(),
  });
  const expiry = expiresAt(schedule, { id, nextRunAt, now });
  if (expiry !== undefined) job.expiresAt = expiry;
  return job;
}

/**
 * An occurrence that has not started after `maxRunningTime` never starts: otherwise it would block its schedule as long as
 * no worker serves its queue. One that is created late, after an outage or another run, has this time from then on. A
 * triggered run waits as long as it must.
 */
function expiresAt(
  { expiresIn, maxRunningTime }: ScheduleDocument,
  { id, nextRunAt, now }: { id: string; nextRunAt: Date; now: Date },
): Date | undefined {
  const limits: number[] = [];
  if (expiresIn != null) limits.push(nextRunAt.getTime() + expiresIn);
  if (maxRunningTime !== null && id.includes('@'))
    limits.push(Math.max(nextRunAt.getTime(), now.getTime()) + maxRunningTime);
  return limits.length === 0 ? undefined : new Date(Math.min(...limits));
}

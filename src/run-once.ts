import { readPassOptions, type PassOptions } from './config/call-options.js';
import { ChronosError } from './domain/errors.js';
import type { JobDocument } from './domain/job.js';
import type { Lifetime } from './lifetime.js';
import type { EventBus } from './runtime/event-bus.js';
import type { Definitions } from './schedules/definitions.js';
import type { PassEntry } from './schedules/pass-entry.js';

/** What one pass came to. */
export interface PassReport {
  /** The time it was for. */
  at: Date;
  /** Each definition in the order it was looked at, then stored schedules that made jobs. */
  entries: PassEntry[];
  /** Due jobs that were claimed and executed besides. */
  executed: number;
  /** Attempts that failed, in place or not: a program started by cron exits with something else than 0 then. */
  failed: number;
}

/** One pass, for system cron; `isRepeated` when a daemon makes it. */
export async function runOnce(
  lifetime: Lifetime,
  events: EventBus,
  timezone: string,
  options: PassOptions,
  isRepeated = false,
): Promise<PassReport> {
  return lifetime.duringPass(makePass(lifetime, events, timezone, options, isRepeated));
}

async function makePass(
  lifetime: Lifetime,
  events: EventBus,
  timezone: string,
  options: PassOptions,
  isRepeated: boolean,
): Promise<PassReport> {
  const { at, dryRun, batch } = readPassOptions(options, timezone);
  const { scheduling, sweeper, engine, clock, refreshClock } = await lifetime.connect();
  await refreshClock();
  const { pass, registrar, materialiser } = scheduling;
  const when = at ?? clock.now();
  if (dryRun) return { at: when, entries: await scheduling.preview(at), executed: 0, failed: 0 };

  const began = clock.monotonic();
  let failed = 0;
  const count = (): void => {
    failed++;
  };
  events.on('job:failed', count);
  try {
    await lifetime.ensureInstalled();
    await sweeper.runOnce();
    if (engine.isStopped) return { at: when, entries: [], executed: 0, failed };
    // Once there is nobody to throw to, one bad definition must not keep the others from running.
    await (isRepeated ? registrar.registerNew() : registrar.registerAll());
    const entries = await pass.run(at);
    failed += entries.filter(({ result, jobId }) => result === 'failed' && jobId === null).length;
    if (engine.isStopped) return { at: when, entries, executed: 0, failed };
    const stored = at === undefined ? await materialiser.collect('stored') : [];
    const enqueued = stored.map(({ _id, schedule, scheduledFor }): PassEntry => ({
      ...{ name: schedule ?? _id, result: 'enqueued', reason: null, jobId: _id, scheduledFor },
    }));
    const executed = batch === 0 ? 0 : await engine.runPass(batch);
    events.emit('worker:cycle', { operation: 'run a pass', duration: clock.monotonic() - began });
    return { at: when, entries: [...entries, ...enqueued], executed, failed };
  } finally {
    events.off('job:failed', count);
  }
}

/** Recovers what is stale, makes what schedules owe, and executes up to `batch` due jobs; resolves to how many. */
export async function runBatch(lifetime: Lifetime, definitions: Definitions, batch: number): Promise<number> {
  if (!Number.isInteger(batch) || batch < 1) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `run() batch must be a whole number from 1, got ${String(batch)}`,
    );
  }
  definitions.forWorker();
  return lifetime.duringPass(makeBatch(lifetime, batch));
}

async function makeBatch(lifetime: Lifetime, batch: number): Promise<number> {
  const { engine, sweeper } = await lifetime.connect();
  await lifetime.ensureInstalled();
  await sweeper.runOnce();
  await collectDue(lifetime);
  return engine.runPass(batch);
}

/** Registers the definitions and makes the jobs that schedules owe, in code and stored. Nothing is executed. */
export async function collectDue(lifetime: Lifetime): Promise<JobDocument[]> {
  const { scheduling } = await lifetime.connect();
  await lifetime.ensureInstalled();
  await scheduling.registrar.registerAll();
  return scheduling.materialiser.collect('all');
}

import {
  MAX_BATCH,
  type PassOptions,
  parsePassOptions,
  type ResolvedPassOptions,
} from '../config/method-options.js';
import type { JobDocument } from '../domain/job/job.js';
import { integer, parse } from '../domain/validation.js';
import { systemClock } from '../runtime/system-clock.js';
import { entry, type PassEntry } from '../schedules/pass/pass-entry.js';
import { previewPass } from '../schedules/pass/pass-preview.js';
import type { Components } from './components.js';
import type { SchedulerLifecycle } from './lifecycle.js';

/** The result of one pass. */
export interface PassReport {
  /** The time whose due definitions it ran. */
  at: Date;
  /** One or more per definition, in execution order; then stored schedules that created jobs. */
  entries: PassEntry[];
  /** Due jobs that were claimed and executed, not counting the definitions. */
  executed: number;
  /** Failed attempts, of definitions and of jobs. A program started by cron should then exit with a code other than 0. */
  failed: number;
  /** False if `stop()` ended the pass before it had processed everything that was due. */
  isComplete: boolean;
}

export async function runOnce(lifecycle: SchedulerLifecycle, options: PassOptions): Promise<PassReport> {
  return executePass(lifecycle, parsePassOptions(options, lifecycle.deps.options.timezone));
}

/** Recovers expired locks, enqueues due schedules and executes up to `batch` due jobs. Returns how many it executed. */
export async function runBatch(lifecycle: SchedulerLifecycle, batch: number): Promise<number> {
  parse(integer(1, MAX_BATCH), batch, 'run() batch', 'INVALID_ARGUMENT');
  lifecycle.deps.definitions.assertValidForWorker();
  let executed = 0;
  await runProcessingPass(lifecycle, async (components) => {
    await createDueJobs(components);
    ({ executed } = await components.engine.runBatch(batch));
  });
  return executed;
}

/** A pass that executes jobs. Installs and recovers expired locks first. */
async function runProcessingPass(
  lifecycle: SchedulerLifecycle,
  pass: (components: Components) => Promise<void>,
): Promise<void> {
  await lifecycle.runPass(async (components) => {
    const { engine, heartbeat, store, sweeper } = components;
    await lifecycle.ensureInstalled();
    // This process may have installed long ago, and a newer version since.
    await store.assertSupported();
    await heartbeat.duringPass(async () => {
      await sweeper.runOnce();
      if (!engine.isStopped) await pass(components);
    });
  });
}

/** Registers the definitions and creates the jobs of all due schedules, in code and stored. Executes nothing. */
export async function enqueueDue(lifecycle: SchedulerLifecycle): Promise<JobDocument[]> {
  let jobs: JobDocument[] = [];
  await lifecycle.runPass(async (components) => {
    await lifecycle.ensureInstalled();
    jobs = await createDueJobs(components);
  });
  return jobs;
}

async function createDueJobs({ definitionSync, enqueuer }: Components): Promise<JobDocument[]> {
  await definitionSync.registerAll();
  return enqueuer.collect('all');
}

/** `skipInvalidDefinitions`: report an invalid definition and run the others, instead of throwing. */
export async function executePass(
  lifecycle: SchedulerLifecycle,
  { at, dryRun, batch }: ResolvedPassOptions,
  { skipInvalidDefinitions = false } = {},
): Promise<PassReport> {
  const start = at ?? systemClock.now();
  const report: PassReport = { at: start, entries: [], executed: 0, failed: 0, isComplete: false };
  if (dryRun) {
    await lifecycle.runPass(async (components) => {
      report.at = at ?? components.clock.now();
      report.entries.push(...(await previewPass(components, components.definitionSync, at)));
      report.isComplete = true;
    });
    return report;
  }
  await runProcessingPass(lifecycle, async ({ clock, engine, events, ...components }) => {
    const { definitionSync, definitionPass, enqueuer } = components;
    report.at = at ?? clock.now();
    const began = clock.monotonic();
    const registration = { includeCurrentMinute: at === undefined };
    await (skipInvalidDefinitions
      ? definitionSync.registerNew(registration)
      : definitionSync.registerAll(registration));
    report.entries.push(...(await definitionPass.run(at)));
    report.failed = report.entries.filter(({ result }) => result === 'failed').length;
    if (engine.isStopped) return;

    if (at === undefined) report.entries.push(...(await enqueuer.collect('stored')).map(toEntry));
    if (batch > 0) {
      const { executed, failed } = await engine.runBatch(batch);
      report.executed = executed;
      report.failed += failed;
    }
    report.isComplete = !engine.isStopped;
    events.measure('round', { operation: 'run pass', duration: clock.monotonic() - began });
  });
  return report;
}

function toEntry({ _id, schedule, scheduledFor }: JobDocument): PassEntry {
  return entry(schedule ?? _id, 'enqueued', null, _id, scheduledFor);
}

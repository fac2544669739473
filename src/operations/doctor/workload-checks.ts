import { DEFAULT_QUEUE } from '../../config/options.js';
import { hangingAfter, MIN_HANGING_MS, QUEUE_HANGING_MS } from '../../domain/job/hanging.js';
import { groupBy } from '../../domain/language.js';
import type { RunningJob } from '../../store/jobs/hanging.js';
import { capable } from '../explain/worker-checks.js';
import {
  type CheckDeps,
  type Checks,
  type DueNow,
  error,
  listNames,
  MAX_CLOCK_ERROR_MS,
  ok,
  warning,
} from './check.js';

/** A lock that expired longer ago than this should have been swept. */
const UNSWEPT_AFTER_MS = 120_000;
const MAX_EXPIRED = 100;
/** Workers check schedules every few seconds: no worker serves a schedule that is later than this. */
const LATE_AFTER_MS = 120_000;
/** A pending run may wait for the previous one, but after a day a person should check. */
const PENDING_TOO_LONG_MS = 86_400_000;
const MAX_RUNNING = 1000;
/** The default of the option `timeout`: doctor does not know the handlers of other processes. */
const USUAL_TIMEOUT_MS = 3_600_000;
const MAX_FOUND = 10;
/** How many of the jobs that failed last are checked. */
const MAX_FAILED = 1000;
const MAX_SCHEDULES = 1000;

export const workloadChecks: Checks = {
  async workersAlive({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length > 0 && live.every(({ isDraining }) => isDraining))
      return warning('Every live worker is draining: no job starts.', 'Undrain one, or start another.');
    if (live.length > 0) return ok(`${live.length} live: ${listNames(live.map(({ id }) => id))}.`);
    return (await dueNow()).pairs.length > 0
      ? error('No worker is alive, and jobs are due.', 'Start a worker.')
      : warning('No worker is alive.', 'Start a worker.');
  },

  async workerVersions({ liveWorkers }) {
    const versions = [...new Set((await liveWorkers()).map(({ version }) => version))].sort();
    if (versions.length <= 1)
      return ok(`All live workers have the same version (${versions[0] ?? 'none is alive'}).`);
    const advice = 'This is expected during an update. Otherwise update the older ones.';
    return warning(`Live workers have different versions: ${listNames(versions)}.`, advice);
  },

  async workerClocks({ liveWorkers }) {
    const imprecise = (await liveWorkers())
      .filter(({ clockError }) => clockError !== null && clockError > MAX_CLOCK_ERROR_MS)
      .map(({ id, clockError }) => `${id} (${Math.round(clockError ?? 0)} ms)`);
    if (imprecise.length === 0) return ok("All live workers have measured the database's time precisely.");
    const advice =
      'Their round trips to the database are slow: check the network, and the load of the workers and the database.';
    return warning(`Workers measure the database's time only imprecisely: ${listNames(imprecise)}.`, advice);
  },

  async workerConnections({ liveWorkers }) {
    const live = await liveWorkers();
    const warnings = live.flatMap((worker) => worker.warnings.map((text) => ({ text, id: worker.id })));
    if (warnings.length === 0) return ok('The connections of all live workers have the usual options.');
    const findings = [...groupBy(warnings, ({ text }) => text)].map(
      ([text, workers]) => `${listNames(workers.map(({ id }) => id))}: ${text}`,
    );
    const advice =
      'Change these options of the client that the application passes, or set uri: then Chronos opens its own connections.';
    return warning(
      `Workers use a client with options that are worse for them. ${findings.join('; ')}.`,
      advice,
    );
  },

  async handlers({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length === 0) return ok('Not checked: no worker is alive.');
    const known = new Set(live.flatMap(({ taskTypes }) => taskTypes));
    const due = await dueNow();
    const unknown = unique(due.pairs.map(({ taskType }) => taskType).filter((type) => !known.has(type)));
    if (unknown.length === 0) return ok(`Live workers have handlers for all due jobs${scope(due)}.`);
    const finding = `No live worker has a handler for these task types with due jobs: ${listNames(unknown)}.`;
    return error(finding, 'Deploy a worker that registers them, or cancel the jobs.');
  },

  /** A job needs a worker that serves its queue and has its handler. */
  async queues({ liveWorkers, dueNow }) {
    const live = await liveWorkers();
    if (live.length === 0) return ok('Not checked: no worker is alive.');
    const served = new Set(live.flatMap((worker) => worker.queues));
    const due = await dueNow();
    const unserved = unique(due.pairs.map(({ queue }) => queue).filter((queue) => !served.has(queue)));
    if (unserved.length > 0) {
      const advice = 'Start a worker that has them in its `queues`, or cancel the jobs.';
      return error(`Jobs are due in queues that no live worker serves: ${listNames(unserved)}.`, advice);
    }
    // The check `handlers` reports task types that no worker has a handler for.
    const known = new Set(live.flatMap(({ taskTypes }) => taskTypes));
    const split = due.pairs.filter((pair) => known.has(pair.taskType) && capable(live, pair).length === 0);
    if (split.length > 0) {
      const names = split.map(({ queue, taskType }) => `${taskType} in ${queue}`).sort();
      const advice =
        'Start a worker that has both the queue in its `queues` and the handler, or cancel or move the jobs.';
      const finding = `Jobs are due, but no live worker has both their handler and their queue: ${listNames(names)}.`;
      return error(finding, advice);
    }
    return ok(`The queues of all due jobs are served by live workers that have their handlers${scope(due)}.`);
  },

  async expiredLocks(_, { store, clock }) {
    const expired = await store.findExpiredLocks(ago(clock, UNSWEPT_AFTER_MS), MAX_EXPIRED);
    if (expired.length === 0) return ok('All expired locks have been swept.');
    const count = expired.length === MAX_EXPIRED ? `${MAX_EXPIRED} or more` : String(expired.length);
    const finding = `${count} jobs have locks that expired minutes ago: ${listNames(expired.map(({ _id }) => _id))}.`;
    const advice =
      'Every live worker sweeps: start one, or check the logs of live workers for failed sweeps.';
    return error(finding, advice);
  },

  async invalidJobs(_, { store }) {
    const invalid = await store.findInvalid(MAX_FOUND, MAX_FAILED);
    if (invalid.length === 0)
      return ok(
        'None of the 1,000 jobs that failed last was malformed, and every scheduled job has a valid time.',
      );
    const finding = `Stored jobs are malformed and did not run: ${listNames(invalid.map(({ _id }) => _id))}.`;
    const advice =
      'Another program or a person wrote them: docs/wire.md says what a job may contain. `chronos jobs show` says what is wrong with each. Correct the program, then delete them.';
    return warning(finding, advice);
  },

  async hangingJobs(_, { store, clock }) {
    const running = await store.findRunningJobs(MAX_RUNNING);
    const now = clock.now().getTime();
    const runningFor = ({ startedAt }: RunningJob): number => now - (startedAt?.getTime() ?? now);
    const suspects = running.filter((job) => runningFor(job) >= MIN_HANGING_MS);
    const usual = suspects.length === 0 ? new Map<string, number>() : await store.findUsualDurations();
    const hanging = suspects.filter(
      (job) => runningFor(job) >= hangingAfter(usual.get(job.taskType), job.timeout ?? USUAL_TIMEOUT_MS),
    );
    if (hanging.length === 0)
      return ok('No job has been running for much longer than is usual for its task type.');
    const types = [...groupBy(hanging, ({ taskType }) => taskType)].map(([taskType, jobs]) => {
      const longest = jobs.reduce((a, b) => (runningFor(b) > runningFor(a) ? b : a));
      const usually = usual.get(taskType);
      const comparison = usually === undefined ? '' : `, usually ${formatMs(usually)}`;
      return `${taskType} (${jobs.length} running, ${longest._id} for ${formatMs(runningFor(longest))}${comparison})`;
    });
    const advice =
      'Find out what their handlers wait for: a service that does not reply, a lock, a missing timeout. Cancel them, or restart their workers, once the cause is gone.';
    return warning(`Jobs have been running for much longer than usual: ${listNames(types.sort())}.`, advice);
  },

  /** Only queues of workers that have had the time to finish something. */
  async hangingQueues({ liveWorkers, dueNow }, { store, clock }) {
    const since = ago(clock, QUEUE_HANGING_MS);
    const workers = (await liveWorkers()).filter(
      ({ isDraining, startedAt }) => !isDraining && startedAt <= since,
    );
    const due = await dueNow();
    const overdue = due.pairs.filter((pair) => pair.dueAt <= since && capable(workers, pair).length > 0);
    const queues = unique(overdue.map(({ queue }) => queue)).slice(0, MAX_FOUND);
    const idle = await store.findIdleQueues(queues, since);
    if (idle.length === 0)
      return ok(`Every queue with overdue jobs has finished a job in the last five minutes${scope(due)}.`);
    const finding = `Jobs have been due for more than five minutes, and none has finished in that time, in these queues: ${listNames(idle)}.`;
    const advice =
      'Find out with explain what keeps the oldest job from running. If all slots are taken, the handlers that run hang or take very long: see the check hangingJobs, or add workers.';
    return warning(finding, advice);
  },

  async lateSchedules(_, { store, clock }) {
    const late = await store.findLateSchedules(ago(clock, LATE_AFTER_MS), MAX_FOUND);
    if (late.length === 0) return ok('All schedules are on time.');
    const finding = `Schedules are late: ${listNames(late.map(({ _id, nextRunAt }) => `${_id} (${nextRunAt?.toISOString() ?? ''})`))}.`;
    const advice =
      'A stored schedule needs any live worker; one from code needs a worker that has its definition and runs in its environment. Start one, or remove the schedule.';
    return error(finding, advice);
  },

  async scheduleQueues({ liveWorkers }, { store }) {
    const live = await liveWorkers();
    if (live.length === 0) return ok('Not checked: no worker is alive.');
    const unserved = (await store.findScheduleTargets(MAX_SCHEDULES))
      .map(({ _id, taskType, queue }) => ({ id: _id, taskType, queue: queue ?? DEFAULT_QUEUE }))
      .filter((target) => capable(live, target).length === 0);
    if (unserved.length === 0)
      return ok('For every schedule, a live worker serves its queue and has its handler.');
    const names = unserved.map(({ id, queue }) => `${id} in ${queue}`).sort();
    const advice =
      'Their runs wait, and end expired after maxRunningTime if it is set: start a worker that has both the queue in its `queues` and the handler, or remove the schedules.';
    return warning(
      `No live worker both serves the queue and has the handler of these schedules: ${listNames(names)}.`,
      advice,
    );
  },

  async disabledSchedules(_, { store }) {
    const disabled = await store.findDisabledSchedules(MAX_FOUND);
    if (disabled.length === 0)
      return ok('No schedule is disabled because its rule is invalid or its document is malformed.');
    const finding = `Schedules are disabled: ${listNames(disabled.map(({ _id, disabledReason }) => `${_id} (${disabledReason ?? ''})`))}.`;
    return error(
      finding,
      'Correct their rules with updateSchedule(), or remove them. A malformed document can only be removed, or corrected in the database.',
    );
  },

  async pendingRuns(_, { store, clock }) {
    const pending = await store.findLongPending(ago(clock, PENDING_TOO_LONG_MS), MAX_FOUND);
    if (pending.length === 0) return ok('No run has been pending for more than a day.');
    const finding = `Schedules have runs that have been pending for more than a day: ${listNames(pending.map(({ _id }) => _id))}.`;
    const advice = 'Find out with explain why the previous run has not ended, and cancel it if it hangs.';
    return warning(finding, advice);
  },
};

/** Mentions that only some of the due jobs were checked. */
function scope({ isComplete }: DueNow): string {
  return isComplete
    ? ''
    : ' that were checked (there are too many queues, task types and priorities to check all)';
}

function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}

function ago(clock: CheckDeps['clock'], ms: number): Date {
  return new Date(clock.now().getTime() - ms);
}

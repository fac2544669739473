import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import type { ClockAnchor } from '../runtime/database-clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Store } from '../store/store.js';
import { attemptOf } from './announce.js';
import { BufferSize } from './buffer-size.js';
import { CancelWatch } from './cancel-watch.js';
import { ClaimTurns } from './claim-turns.js';
import type { ClaimedJob } from './claimed-job.js';
import { DoubtfulClaims } from './doubtful-claims.js';
import type { HandlerRegistry } from './handler-registry.js';
import { InPlaceRuns } from './in-place-runs.js';
import { JobExecutor } from './job-executor.js';
import { JobPicker } from './job-picker.js';
import { JobRunner } from './job-runner.js';
import { LockManager } from './lock-manager.js';
import { NamedLocks } from './named-locks.js';
import { OnePass } from './one-pass.js';
import { PollLoop } from './poll-loop.js';
import { progressSaver } from './progress.js';
import type { Renewer } from './renewer.js';
import { Settler } from './settler.js';
import { StartMarks } from './start-marks.js';

/** What the engine needs of the rest. */
export interface EngineRequest {
  store: Store;
  clock: Clock;
  events: EventBus;
  random: () => number;
  options: ResolvedOptions;
  registry: HandlerRegistry;
  workerId: string;
  renewer: Renewer;
  anchor: () => ClockAnchor | undefined;
  /** How many times longer than their interval polls may wait. */
  patience: () => number;
  /** There is room for more than there was to claim, after a time of plenty. */
  onSated: () => void;
}

/** What claims, runs and settles jobs. Nothing runs yet. */
export interface EngineParts {
  locks: LockManager;
  namedLocks: NamedLocks;
  doubtful: DoubtfulClaims;
  marks: StartMarks;
  settler: Settler;
  runner: JobRunner;
  turns: ClaimTurns;
  pollLoop: PollLoop;
  onePass: OnePass;
  inPlace: InPlaceRuns;
  cancelWatch: CancelWatch;
}

/** Puts the parts together. */
export function makeEngineParts(request: EngineRequest): EngineParts {
  const { store, clock, events, random, options, registry, workerId, renewer, anchor, patience, onSated } =
    request;
  const { concurrency, pollInterval, lockTimeout, queues, executionRetention, timeoutGrace } = options;
  const taskTypes = (): readonly string[] => registry.taskTypes;
  const leaseOf = (taskType: string): number => registry.get(taskType)?.options.lease ?? lockTimeout;
  const bufferSize = new BufferSize();
  const turns = new ClaimTurns();
  const locks = new LockManager({ clock, events, renewer, lockTimeout, anchor });
  const namedLocks = new NamedLocks({ clock, events, store, locks, workerId, lockTimeout });
  const doubtful = new DoubtfulClaims(clock, events, store);
  const picker = new JobPicker({
    store,
    clock,
    random,
    workerId,
    queues,
    taskTypes,
    leaseOf,
    onRound: (round) => {
      events.emit('worker:claim', round);
    },
    onDoubt: (claim) => {
      doubtful.add(claim);
    },
  });
  const marks = new StartMarks(clock, events, store);
  const settler = new Settler({ store, clock, events, workerId, executionRetention });
  const runner = new JobRunner({
    executor: new JobExecutor({
      registry,
      clock,
      random,
      options,
      saveProgress: progressSaver(store, clock, events),
      onHookFailed: (job, hook, error) => {
        events.emit('job:hookFailed', { ...attemptOf(job), hook, error });
      },
    }),
    locks,
    marks,
    settler,
    clock,
    events,
    concurrency,
    timeoutGrace,
    settlesAlone: (taskType) => registry.get(taskType)?.options.settle === 'immediate',
    onUnwanted: (claimed) => {
      void doubtful.giveBack(claimed);
    },
    onSlotFree: (duration) => {
      if (duration !== undefined) bufferSize.observeHandler(duration);
      pollLoop.roomMade();
    },
    onSettled: (again) => {
      if (again) pollLoop.hint();
      else pollLoop.roomMade();
    },
  });
  const claiming = {
    picker,
    runner,
    giveBack: (claimed: readonly ClaimedJob[]) => doubtful.giveBack(claimed),
    exclusively: <T>(claim: () => Promise<T>) => turns.take(claim),
  };
  const onePass = new OnePass(claiming);
  const inPlace = new InPlaceRuns({ store, clock, workerId, leaseOf, runner, doubtful });
  const cancelWatch = new CancelWatch(clock, events, store, runner, () => pollInterval * patience());
  const pollLoop = new PollLoop({
    clock,
    events,
    store,
    ...claiming,
    settler,
    bufferSize,
    queues,
    taskTypes,
    pollInterval,
    patience,
    onSated,
  });
  return {
    locks,
    namedLocks,
    doubtful,
    marks,
    settler,
    runner,
    turns,
    pollLoop,
    onePass,
    inPlace,
    cancelWatch,
  };
}

import assert from 'node:assert/strict';
import { OutageMonitor } from '../../../src/runtime/outage-monitor.js';
import { Claimer } from '../../../src/worker/claimer.js';
import { resolveOptions } from '../../../src/config/options.js';
import { FaultMonitor } from '../../../src/maintenance/fault-monitor.js';
import { HangMonitor } from '../../../src/maintenance/hang-monitor.js';
import { Heartbeat } from '../../../src/maintenance/heartbeat.js';
import { Pruner } from '../../../src/maintenance/pruner.js';
import { Sweeper } from '../../../src/maintenance/sweeper.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { PeriodicService } from '../../../src/runtime/periodic-service.js';
import type { DefinitionSync } from '../../../src/schedules/enqueue/definition-sync.js';
import type { MalformedSchedules } from '../../../src/schedules/enqueue/malformed-schedules.js';
import type { PlanExecutor } from '../../../src/schedules/enqueue/plan-executor.js';
import type { PlanningLock } from '../../../src/schedules/enqueue/planning-lock.js';
import { ScheduleEnqueuer } from '../../../src/schedules/enqueue/schedule-enqueuer.js';
import type { SchedulePlanner } from '../../../src/schedules/enqueue/schedule-planner.js';
import { CancellationPoller } from '../../../src/worker/cancellation-poller.js';
import { ChangeListener } from '../../../src/worker/change-listener.js';
import type { JobRunner } from '../../../src/worker/job-runner.js';
import { LockManager } from '../../../src/worker/locks/lock-manager.js';
import { RenewalLoop } from '../../../src/worker/locks/lock-renewer.js';
import { PollLoop } from '../../../src/worker/poll-loop.js';
import { SingleInstances } from '../../../src/worker/single-instances.js';
import { UncertainClaims } from '../../../src/worker/uncertain-claims.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { seededRandom } from '../../support/seeded-random.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { noInvalidJobs } from '../../support/no-invalid-jobs.js';
import type { Operation } from '../../../src/domain/events.js';

const HOUR = 3_600_000;
const options = resolveOptions({ uri: 'mongodb://unused/app' });

interface ServiceContext {
  clock: ManualClock;
  events: EventBus;
  /** Every service calls this in each of its rounds. It counts them, and throws while `failure` is set. */
  round: () => void;
}

const runner = {
  freeSlots: 1,
  prefetched: 0,
  takePrefetched: () => [],
  accept: () => [],
  onCapacity: () => undefined,
  cancel: () => undefined,
} as unknown as JobRunner;

const inFlight = {
  tokens: new Map([['job', 'token']]),
  started: 0,
  hasCrashSuspect: false,
  excludedIds: [],
  queueRoom: undefined,
  has: () => true,
};

const noUncertainClaims = { release: async () => undefined };

const changes = {
  intervalMultiplier: 1,
  subscribe: () => undefined,
  rest: () => undefined,
  resume: () => undefined,
};

/** Services that are repeated sooner than others, in milliseconds. */
const MAX_DELAYS: Partial<Record<Operation, number>> = { heartbeat: 2000, 'claim jobs': 4000 };

/** Every service, with fakes for its dependencies. */
const SERVICES: Record<string, (context: ServiceContext) => PeriodicService> = {
  Sweeper: ({ clock, events, round }) =>
    new Sweeper({
      clock,
      events,
      options,
      registry: aRegistry(),
      random: () => 0.5,
      workerId: 'me',
      outages: new OutageMonitor(clock, options.lockTimeout),
      store: {
        findExpiredLocks: async () => (round(), []),
        findExpiredJobs: async () => [],
        expireJobs: async () => [],
        keepCancelled: async () => undefined,
        recover: async () => true,
        logExecutions: async () => undefined,
        findDeadWorkers: async () => [],
        findLockOwners: async () => new Map(),
        findUnloggedJobs: async () => [],
        markLogCompleted: async () => undefined,
      },
      engine: { wake: () => undefined },
      invalidJobs: noInvalidJobs,
    }),
  Pruner: ({ clock, events, round }) =>
    new Pruner({
      clock,
      events,
      options,
      registry: { taskTypes: [], isUsed: false },
      store: {
        prune: async (prunable) => (
          prunable.kind === 'finished' && prunable.status === 'COMPLETED' && round(),
          0
        ),
        countPrunable: async () => ({ count: 0, atLeast: false }),
        findListedTaskTypes: async () => [],
      },
    }),
  FaultMonitor: ({ clock, events, round }) =>
    new FaultMonitor({
      ...{ clock, events, options },
      store: { readInstallation: async () => (round(), null), inspectCollections: async () => [] },
    }),
  HangMonitor: ({ clock, events, round }) =>
    new HangMonitor({
      ...{ clock, events, options },
      registry: aRegistry(),
      store: {
        findUsualDurations: async () => new Map(),
        findOverdueQueues: async () => (round(), []),
        findIdleQueues: async () => [],
      },
      engine: { runningTypes: new Map(), isDraining: false },
    }),
  Heartbeat: ({ clock, events, round }) =>
    new Heartbeat({
      clock,
      events,
      options,
      registry: { taskTypes: [] },
      workerId: 'me',
      store: { saveHeartbeat: async () => false, findLockOwners: async () => new Map() },
      engine: {
        running: 0,
        queueSlots: [],
        isDraining: false,
        drain: async () => true,
        undrain: () => undefined,
      },
      state: { current: 'Running' },
      databaseClock: { synchronize: async () => round(), error: 0 },
      warnings: [],
    }),
  PollLoop: ({ clock, events, round }) =>
    new PollLoop({
      clock,
      events,
      store: { nextDueAt: async () => null },
      claimer: new Claimer({
        picker: { isContended: false, pick: async () => (round(), []) },
        uncertainClaims: noUncertainClaims,
        singleInstances: {
          select: () => [],
          admit: async () => [],
          hasWaitingJobs: false,
        },
        runner,
        inFlight,
      }),
      runner,
      settler: { pending: 0 },
      uncertainClaims: noUncertainClaims,
      changes,
      registry: { taskTypes: ['work'] },
      options,
    }),
  CancellationPoller: ({ clock, events, round }) =>
    new CancellationPoller({
      ...{ clock, events, inFlight, runner, changes, options },
      store: { findCancelRequests: async () => (round(), new Map()) },
    }),
  UncertainClaims: ({ clock, events, round }) => {
    const releaseByToken = async (): Promise<number> => (round(), 0);
    const service = new UncertainClaims(clock, events, {
      releaseByToken,
      release: async () => 0,
    });
    service.add({ token: 'token', ids: undefined, lease: 1e12 });
    return service;
  },
  SingleInstances: ({ clock, events, round }) =>
    new SingleInstances({
      ...{ clock, events, changes, options, uncertainClaims: noUncertainClaims },
      registry: { singleInstances: new Set(['report']) },
      store: {
        findWaitedFor: async () => (round(), []),
        findCurrentRun: async () => null,
        storeCurrentRun: async () => true,
        findRunStates: async () => new Map(),
        makeWait: async () => undefined,
        findFirstWaiting: async () => null,
        endWait: async () => true,
      },
    }),
  LockManager: ({ clock, events, round }) =>
    new LockManager({
      clock,
      events,
      lockTimeout: 60_000,
      outages: new OutageMonitor(clock, 60_000),
      renewer: {
        start: async () => undefined,
        track: () => undefined,
        untrack: () => undefined,
        heartbeat: round,
        flushReports: () => undefined,
        stop: async () => undefined,
      },
    }),
  ScheduleEnqueuer: ({ clock, events, round }) =>
    new ScheduleEnqueuer({
      ...{ clock, events, random: () => 0.5, options: { environment: 'test', pollInterval: 5000 } },
      store: {
        findDueSchedules: async () => (round(), []),
        findPendingSchedules: async () => [],
        findSchedules: async () => [],
        findUnselectableSchedules: async () => [],
        nextScheduleAt: async () => null,
      },
      planner: {
        decide: async () => ({ stored: [], conflicts: 0, unplannable: [] }),
      } as unknown as SchedulePlanner,
      executor: { execute: async () => [] } as unknown as PlanExecutor,
      definitionSync: {
        names: [],
        registerNew: async () => undefined,
        reportUnserved: async () => undefined,
      } as unknown as DefinitionSync,
      malformed: { removeFrom: async () => [] } as unknown as MalformedSchedules,
      planningLock: { observe: () => undefined, release: async () => undefined } as unknown as PlanningLock,
      changes: { intervalMultiplier: 1 },
    }),
  ChangeListener: ({ clock, events, round }) =>
    new ChangeListener({
      clock,
      events,
      registry: aRegistry(),
      options,
      usesMongos: false,
      store: {
        async *watchChanges(_, signal) {
          while (!signal.aborted) {
            round();
            yield 'quiet';
            await clock.sleep(5000, signal);
          }
        },
      },
    }),
  RenewalLoop: ({ clock, events, round }) => {
    const report = { renewed: () => undefined, lost: () => undefined };
    const lease = { kind: 'named', id: 'a', token: 't', length: 60_000, prefetched: false } as const;
    const leases = [{ ...lease, renewedAt: -60_000, renewUntil: Infinity }];
    const renew = async (): Promise<[]> => (round(), []);
    return new RenewalLoop({ clock, events, leases: () => leases, renew, report });
  },
};

describe('every periodic service', () => {
  for (const [name, create] of Object.entries(SERVICES)) {
    describe(name, () => {
      let clock: ManualClock;
      let events: EventBus;
      let service: PeriodicService;
      let rounds: number;
      let failure: Error | undefined;

      beforeEach(() => {
        clock = new ManualClock();
        events = new EventBus('worker');
        rounds = 0;
        failure = undefined;
        const round = (): void => {
          rounds++;
          if (failure !== undefined) throw failure;
        };
        service = create({ clock, events, round });
      });

      afterEach(async () => {
        await service.stop();
        assert.equal(clock.sleepers, 0, 'no sleep may be left after stop()');
        const before = rounds;
        clock.advance(HOUR);
        service.wake();
        await flushEventLoop();
        assert.equal(rounds, before, 'no round may follow stop()');
      });

      it('can be stopped before it was started', async () => {
        await service.stop();
        assert.equal(rounds, 0);
      });

      it('runs its first round after start() has returned', async () => {
        service.start();
        assert.equal(rounds, 0);
        await flushEventLoop();
        assert.equal(rounds, 1);
        assert.equal(clock.sleepers, 1);
      });

      it('runs again when its interval has passed', async () => {
        service.start();
        await flushEventLoop();
        clock.advance(HOUR);
        await flushEventLoop();
        assert.ok(rounds >= 2);
      });

      it('starts once however often start() is called', async () => {
        service.start();
        service.start();
        await flushEventLoop();
        service.start();
        await flushEventLoop();
        assert.deepEqual([rounds, clock.sleepers], [1, 1]);
      });

      it('stops once however often stop() is called', async () => {
        service.start();
        await flushEventLoop();
        await Promise.all([service.stop(), service.stop()]);
        await service.stop();
        assert.equal(clock.sleepers, 0);
      });

      it('can be stopped before its first round', async () => {
        service.start();
        await service.stop();
        await flushEventLoop();
        assert.equal(rounds, 0);
      });

      it('starts again after a stop', async () => {
        service.start();
        await flushEventLoop();
        await service.stop();
        clock.advance(HOUR);
        service.start();
        await flushEventLoop();
        assert.deepEqual([rounds, clock.sleepers], [2, 1]);
      });

      it('starts again while it is stopping', async () => {
        service.start();
        await flushEventLoop();
        clock.advance(HOUR);
        await flushEventLoop();
        const before = rounds;
        const stopped = service.stop();
        service.start();
        await stopped;
        await flushEventLoop();
        clock.advance(HOUR);
        await flushEventLoop();
        assert.ok(rounds > before);
        assert.equal(clock.sleepers, 1);
      });

      it('can be woken at any time', async () => {
        service.wake();
        await flushEventLoop();
        assert.equal(rounds, 0);
        service.start();
        service.wake();
        await flushEventLoop();
        clock.advance(HOUR - 1);
        service.wake();
        await flushEventLoop();
        assert.ok(rounds >= 2);
        assert.equal(clock.sleepers, 1);
      });

      it('retries a failed round with growing delays and reports it', async () => {
        const record = recordEvents(events, 'worker:error', 'worker:recovered');
        const error = new Error('no answer');
        failure = error;
        service.start();
        await flushEventLoop();
        for (const [failures, delay] of [
          [1, 250],
          [2, 500],
          [3, 1000],
          [4, 2000],
          [5, 4000],
          [6, 8000],
          [7, 10_000],
        ] as const) {
          const retryIn = Math.min(delay, MAX_DELAYS[service.name] ?? Infinity);
          const expected = { operation: service.name, error, failures, retryIn };
          assert.deepEqual(record.at(-1), { name: 'worker:error', event: expected });
          assert.equal(rounds, failures);
          service.wake();
          clock.advance(retryIn - 1);
          await flushEventLoop();
          assert.equal(rounds, failures, 'neither early nor because of wake()');
          if (failures === 7) failure = undefined;
          clock.advance(1);
          await flushEventLoop();
        }
        const operation = service.name;
        assert.deepEqual(record.at(-1), { name: 'worker:recovered', event: { operation, failures: 7 } });
      });

      it('can be stopped while it waits after a failure', async () => {
        failure = new Error('no answer');
        service.start();
        await flushEventLoop();
        await service.stop();
        assert.equal(clock.sleepers, 0);
      });

      it('survives any order of these calls', async () => {
        for (let seed = 1; seed <= 40; seed++) {
          const random = seededRandom(seed);
          const stops: Promise<void>[] = [];
          let started = false;
          const actions: (() => unknown)[] = [
            () => {
              service.start();
              started = true;
            },
            () => {
              stops.push(service.stop());
              started = false;
            },
            () => service.wake(),
            () => clock.advance(random() * 20_000),
            () => (failure = random() < 0.3 ? new Error('no answer') : undefined),
          ];
          for (let step = 0; step < 20; step++) {
            for (let burst = random() * 4; burst > 0; burst--)
              actions[Math.floor(random() * actions.length)]?.();
            assert.ok(clock.sleepers <= 1, 'never two loops');
            // One microtask, or one turn of the event loop.
            await (random() < 0.5 ? Promise.resolve() : flushEventLoop(1));
          }
          failure = undefined;
          const before = rounds;
          await flushEventLoop();
          for (let i = 0; i < 3; i++) {
            clock.advance(HOUR);
            await flushEventLoop();
          }
          assert.equal(
            rounds > before,
            started,
            `runs only if start() was called after stop() (seed ${seed})`,
          );
          await service.stop();
          await Promise.all(stops);
          assert.equal(clock.sleepers, 0);
        }
      });
    });
  }
});

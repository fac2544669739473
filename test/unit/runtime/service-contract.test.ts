import assert from 'node:assert/strict';
import { Heartbeat, type WorkerFacts } from '../../../src/maintenance/heartbeat.js';
import { Pruner } from '../../../src/maintenance/pruner.js';
import { Sweeper } from '../../../src/maintenance/sweeper.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { PeriodicService } from '../../../src/runtime/service.js';
import type { Decisions } from '../../../src/schedules/decisions.js';
import type { Fulfilment } from '../../../src/schedules/fulfilment.js';
import { Materialiser } from '../../../src/schedules/materialiser.js';
import type { Turn } from '../../../src/schedules/turn.js';
import type { Registrar } from '../../../src/schedules/registrar.js';
import { BufferSize } from '../../../src/worker/buffer-size.js';
import { CancelWatch } from '../../../src/worker/cancel-watch.js';
import { DoubtfulClaims } from '../../../src/worker/doubtful-claims.js';
import type { JobPicker } from '../../../src/worker/job-picker.js';
import type { JobRunner } from '../../../src/worker/job-runner.js';
import { LockManager } from '../../../src/worker/lock-manager.js';
import { PollLoop } from '../../../src/worker/poll-loop.js';
import { RenewalLoop } from '../../../src/worker/renewal-loop.js';
import type { Settler } from '../../../src/worker/settler.js';
import { Watch } from '../../../src/worker/watch.js';
import { resolveOptions } from '../../../src/config/options.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { seeded } from '../../support/seeded.js';
import { turns } from '../../support/turns.js';

const HOUR = 3_600_000;
const options = resolveOptions({ uri: 'mongodb://unused/app' });

interface World {
  clock: ManualClock;
  events: EventBus;
  /** What a service asks of the world in each of its rounds: counted, and fails when told to. */
  round: () => void;
}

const runner = {
  tokens: new Map([['job', 'token']]),
  freeSlots: 1,
  waiting: 0,
  hasSuspect: false,
  zombies: [],
  takeWaiting: () => [],
  accept: () => undefined,
  cancel: () => undefined,
} as unknown as JobRunner;

/** Every service, with fakes for all it needs. */
const SERVICES: Record<string, (world: World) => PeriodicService> = {
  Sweeper: ({ clock, events, round }) =>
    new Sweeper({
      clock,
      events,
      options,
      random: () => 0.5,
      workerId: 'me',
      store: {
        findExpired: async () => (round(), []),
        recover: async () => true,
        logExecutions: async () => undefined,
      },
    }),
  Pruner: ({ clock, events, round }) =>
    new Pruner({
      clock,
      events,
      options,
      taskTypes: () => [],
      knowsHandlers: () => false,
      store: {
        pruneFinished: async (status) => (status === 'COMPLETED' && round(), 0),
        pruneOrphans: async () => 0,
        pruneExpired: async () => 0,
        countFinishedBefore: async () => ({ count: 0, atLeast: false }),
        countOrphansBefore: async () => ({ count: 0, atLeast: false }),
        countExpiredBefore: async () => ({ count: 0, atLeast: false }),
        findListedTaskTypes: async () => [],
      },
    }),
  Heartbeat: ({ clock, events, round }) =>
    new Heartbeat({
      clock,
      events,
      interval: 10_000,
      facts: () => ({}) as WorkerFacts,
      synchronise: async () => round(),
      store: { saveHeartbeat: async () => undefined },
    }),
  PollLoop: ({ clock, events, round }) =>
    new PollLoop({
      clock,
      events,
      store: { nextDueAt: async () => null },
      picker: { pick: async () => (round(), []) } as unknown as JobPicker,
      runner,
      settler: { pending: 0 } as Settler,
      bufferSize: new BufferSize(),
      queues: ['default'],
      taskTypes: () => ['work'],
      pollInterval: 5000,
      patience: () => 1,
      onSated: () => undefined,
      giveBack: async () => undefined,
      exclusively: (work) => work(),
    }),
  CancelWatch: ({ clock, events, round }) =>
    new CancelWatch(
      clock,
      events,
      { findCancelRequests: async () => (round(), new Map()) },
      runner,
      () => 5000,
    ),
  DoubtfulClaims: ({ clock, events, round }) => {
    const giveBackByToken = async (): Promise<number> => (round(), 0);
    const service = new DoubtfulClaims(clock, events, { giveBackByToken, giveBack: async () => 0 });
    service.add({ token: 'token', ids: undefined, lease: 1e12 });
    return service;
  },
  LockManager: ({ clock, events, round }) =>
    new LockManager({
      clock,
      events,
      lockTimeout: 60_000,
      anchor: () => undefined,
      renewer: {
        start: async () => undefined,
        keep: () => undefined,
        drop: () => undefined,
        beat: round,
        drain: () => undefined,
        stop: async () => undefined,
      },
    }),
  Materialiser: ({ clock, events, round }) =>
    new Materialiser({
      clock,
      events,
      random: () => 0.5,
      environment: 'test',
      pollInterval: 5000,
      patience: () => 1,
      decisions: {} as Decisions,
      fulfilment: {} as Fulfilment,
      registrar: { names: [], registerNew: async () => undefined } as unknown as Registrar,
      turn: { observe: () => undefined, end: async () => undefined } as unknown as Turn,
      store: {
        findDueSchedules: async () => (round(), []),
        findOwingSchedules: async () => [],
        findSchedules: async () => [],
        nextScheduleAt: async () => null,
      },
    }),
  Watch: ({ clock, events, round }) =>
    new Watch({
      clock,
      events,
      queues: ['default'],
      taskTypes: () => ['work'],
      pollInterval: 5000,
      isBusy: () => false,
      onNews: () => undefined,
      onGap: () => undefined,
      store: {
        async *watch(_, signal) {
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
    const lease = { kind: 'named', id: 'a', token: 't', length: 60_000, buffered: false } as const;
    const leases = [{ ...lease, renewedAt: -60_000, renewUntil: Infinity }];
    const renew = async (): Promise<[]> => (round(), []);
    return new RenewalLoop({ clock, events, leases: () => leases, renew, report });
  },
};

describe('the life-cycle contract of', () => {
  for (const [name, create] of Object.entries(SERVICES)) {
    describe(name, () => {
      let clock: ManualClock;
      let events: EventBus;
      let service: PeriodicService;
      let rounds: number;
      let trouble: Error | undefined;

      beforeEach(() => {
        clock = new ManualClock();
        events = new EventBus();
        rounds = 0;
        trouble = undefined;
        const round = (): void => {
          rounds++;
          if (trouble !== undefined) throw trouble;
        };
        service = create({ clock, events, round });
      });

      afterEach(async () => {
        await service.stop();
        assert.equal(clock.sleepers, 0, 'nothing may be left asleep after stop');
        const before = rounds;
        clock.advance(HOUR);
        service.wake();
        await turns();
        assert.equal(rounds, before, 'no round may follow stop');
      });

      it('may be stopped before it was started', async () => {
        await service.stop();
        assert.equal(rounds, 0);
      });

      it('starts its first round after start() has returned', async () => {
        service.start();
        assert.equal(rounds, 0);
        await turns();
        assert.equal(rounds, 1);
        assert.equal(clock.sleepers, 1);
      });

      it('goes round again when its time has come', async () => {
        service.start();
        await turns();
        clock.advance(HOUR);
        await turns();
        assert.ok(rounds >= 2);
      });

      it('is started once however often it is asked', async () => {
        service.start();
        service.start();
        await turns();
        service.start();
        await turns();
        assert.deepEqual([rounds, clock.sleepers], [1, 1]);
      });

      it('is stopped once however often it is asked', async () => {
        service.start();
        await turns();
        await Promise.all([service.stop(), service.stop()]);
        await service.stop();
        assert.equal(clock.sleepers, 0);
      });

      it('may be stopped before its first round', async () => {
        service.start();
        await service.stop();
        await turns();
        assert.equal(rounds, 0);
      });

      it('starts again after a stop', async () => {
        service.start();
        await turns();
        await service.stop();
        clock.advance(HOUR);
        service.start();
        await turns();
        assert.deepEqual([rounds, clock.sleepers], [2, 1]);
      });

      it('starts again while it still stops', async () => {
        service.start();
        await turns();
        clock.advance(HOUR);
        await turns();
        const before = rounds;
        const stopped = service.stop();
        service.start();
        await stopped;
        await turns();
        clock.advance(HOUR);
        await turns();
        assert.ok(rounds > before);
        assert.equal(clock.sleepers, 1);
      });

      it('may be woken at any time', async () => {
        service.wake();
        await turns();
        assert.equal(rounds, 0);
        service.start();
        service.wake();
        await turns();
        clock.advance(HOUR - 1);
        service.wake();
        await turns();
        assert.ok(rounds >= 2);
        assert.equal(clock.sleepers, 1);
      });

      it('tries a round that failed again, later and later, and says so', async () => {
        const record = recordEvents(events, 'worker:trouble', 'worker:recovered');
        const failure = new Error('no answer');
        trouble = failure;
        service.start();
        await turns();
        for (const [failures, retryIn] of [
          [1, 250],
          [2, 500],
          [3, 1000],
          [4, 2000],
          [5, 4000],
          [6, 8000],
          [7, 10_000],
        ] as const) {
          const told = { operation: service.name, error: failure, failures, retryIn };
          assert.deepEqual(record.at(-1), { name: 'worker:trouble', event: told });
          assert.equal(rounds, failures);
          service.wake();
          clock.advance(retryIn - 1);
          await turns();
          assert.equal(rounds, failures, 'neither early nor woken by a hint');
          if (failures === 7) trouble = undefined;
          clock.advance(1);
          await turns();
        }
        const operation = service.name;
        assert.deepEqual(record.at(-1), { name: 'worker:recovered', event: { operation, failures: 7 } });
      });

      it('may be stopped while it waits after a failure', async () => {
        trouble = new Error('no answer');
        service.start();
        await turns();
        await service.stop();
        assert.equal(clock.sleepers, 0);
      });

      it('survives any order of it all', async () => {
        for (let seed = 1; seed <= 40; seed++) {
          const random = seeded(seed);
          const stops: Promise<void>[] = [];
          let started = false;
          const acts: (() => unknown)[] = [
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
            () => (trouble = random() < 0.3 ? new Error('no answer') : undefined),
          ];
          for (let step = 0; step < 20; step++) {
            for (let burst = random() * 4; burst > 0; burst--) acts[Math.floor(random() * acts.length)]?.();
            assert.ok(clock.sleepers <= 1, 'never two loops');
            // From one microtask to a whole turn of the event loop.
            await (random() < 0.5 ? Promise.resolve() : turns(1));
          }
          trouble = undefined;
          const before = rounds;
          await turns();
          for (let i = 0; i < 3; i++) {
            clock.advance(HOUR);
            await turns();
          }
          assert.equal(rounds > before, started, `the last call decides (seed ${seed})`);
          await service.stop();
          await Promise.all(stops);
          assert.equal(clock.sleepers, 0);
        }
      });
    });
  }
});

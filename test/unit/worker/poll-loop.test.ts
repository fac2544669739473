import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { Claimer } from '../../../src/worker/claimer.js';
import type { ClaimedJob, PickRequest } from '../../../src/worker/job-picker.js';
import type { FreedCapacity, JobRunner } from '../../../src/worker/job-runner.js';
import { PollLoop } from '../../../src/worker/poll-loop.js';
import { aJob } from '../../support/factories/job.js';
import { signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const claims = (count: number): ClaimedJob[] =>
  Array.from({ length: count }, () => ({ job: aJob(), token: 'token', lease: 60_000, sentAt: 0 }));

describe('PollLoop', () => {
  let clock: ManualClock;
  let loop: PollLoop;
  let runner: {
    freeSlots: number;
    prefetched: number;
    timeSinceLastStart: number;
    hasCrashSuspect: boolean;
    excludedIds: string[];
    stale: ClaimedJob[];
    started: number;
  };
  let pending: { pending: number };
  let requests: PickRequest[];
  let pick: (request: PickRequest) => Promise<ClaimedJob[]>;
  let accepted: ClaimedJob[];
  let released: ClaimedJob[];
  let nextDueAt: Date | null;
  let changes: { intervalMultiplier: number; isResting: boolean };
  let freeCapacity: (freed?: FreedCapacity) => void;
  let claimer: Claimer;
  let contended: boolean;

  beforeEach(() => {
    clock = new ManualClock();
    runner = {
      freeSlots: 2,
      prefetched: 0,
      timeSinceLastStart: 0,
      hasCrashSuspect: false,
      excludedIds: [],
      stale: [],
      started: 0,
    };
    pending = { pending: 0 };
    [requests, accepted, released, nextDueAt] = [[], [], [], null];
    contended = false;
    changes = { intervalMultiplier: 1, isResting: false };
    pick = async () => [];
    const fakeRunner = Object.assign(runner, {
      takePrefetched: () => runner.stale.splice(0),
      onCapacity: (listener: (freed: FreedCapacity) => void) => {
        freeCapacity = (freed = {}) => listener(freed);
      },
      accept: (claimed: readonly ClaimedJob[]) => {
        accepted.push(...claimed);
        runner.freeSlots -= claimed.length;
        return [];
      },
    }) as unknown as JobRunner;
    const uncertainClaims = {
      release: async (claimed: readonly ClaimedJob[]) => void released.push(...claimed),
    };
    const picker = {
      get isContended() {
        return contended;
      },
      pick: (request: PickRequest) => {
        requests.push(request);
        return pick(request);
      },
    };
    claimer = new Claimer({ picker, runner: fakeRunner, inFlight: runner, uncertainClaims });
    loop = new PollLoop({
      clock,
      events: new EventBus(),
      store: { nextDueAt: async ({ after }) => (nextDueAt !== null && nextDueAt > after ? nextDueAt : null) },
      claimer,
      runner: fakeRunner,
      settler: pending,
      uncertainClaims,
      registry: { taskTypes: ['work'] },
      options: { queues: ['default'], pollInterval: 5000 },
      changes: Object.assign(changes, {
        subscribe: () => undefined,
        rest: () => (changes.isResting = true),
        resume: () => (changes.isResting = false),
      }),
    });
  });

  afterEach(async () => {
    await loop.stop();
    assert.equal(clock.sleepers, 0);
  });

  it('claims jobs for the free slots at every poll interval', async () => {
    runner.excludedIds = ['zombie'];
    loop.start();
    await flushEventLoop();
    assert.deepEqual(requests, [{ slots: 2, prefetch: 0, withoutCrashSuspects: false, exclude: ['zombie'] }]);
    clock.advance(4999);
    await flushEventLoop();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(requests.length, 2);
  });

  it('polls earlier for a job that is due earlier', async () => {
    nextDueAt = new Date(clock.now().getTime() + 1200);
    loop.start();
    await flushEventLoop();
    clock.advance(1199);
    await flushEventLoop();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(requests.length, 2);
  });

  it('claims nothing without room, and at once when a slot is free', async () => {
    pick = async () => claims(2);
    loop.start();
    await flushEventLoop();
    assert.equal(accepted.length, 2);
    assert.equal(requests.length, 1);
    runner.freeSlots = 1;
    pick = async () => [];
    freeCapacity();
    await flushEventLoop();
    assert.deepEqual(requests[1]?.slots, 1);
  });

  it('does not poll for each free slot when there was nothing more to claim', async () => {
    pick = async () => claims(1);
    loop.start();
    await flushEventLoop();
    freeCapacity();
    await flushEventLoop();
    assert.equal(requests.length, 1);
  });

  it('claims nothing while too many outcomes wait to be written', async () => {
    pending.pending = 2001;
    loop.start();
    await flushEventLoop();
    assert.equal(requests.length, 0);
    pending.pending = 2000;
    freeCapacity();
    await flushEventLoop();
    assert.equal(requests.length, 1);
  });

  it('releases jobs it claimed while it was stopped', async () => {
    const { promise, fire } = signal<ClaimedJob[]>();
    pick = () => promise;
    loop.start();
    await flushEventLoop();
    claimer.close();
    const stopped = loop.stop();
    const late = claims(2);
    fire(late);
    await stopped;
    assert.deepEqual(released, late);
    assert.deepEqual(accepted, []);
  });

  it('releases jobs that have waited too long for a slot', async () => {
    runner.stale = claims(1);
    const stale = [...runner.stale];
    loop.start();
    await flushEventLoop();
    assert.deepEqual(released, stale);
  });

  it('polls at once for jobs behind a crash suspect', async () => {
    const [suspect] = claims(1);
    suspect!.job.crashes = 1;
    pick = async () => (requests.length === 1 ? [suspect!] : []);
    loop.start();
    await flushEventLoop();
    assert.equal(requests.length, 2);
  });

  describe('when a poll is requested', () => {
    beforeEach(async () => {
      loop.start();
      await flushEventLoop();
      clock.advance(100);
    });

    /** How long after the first of them the claims of a burst start, which is told of every millisecond. */
    async function burst(length: number): Promise<number[]> {
      const times: number[] = [];
      for (let time = 0; time < length; time++) {
        const before = requests.length;
        loop.requestPoll();
        loop.requestPoll();
        await flushEventLoop();
        if (requests.length > before) times.push(time);
        assert.ok(requests.length <= before + 1);
        clock.advance(1);
      }
      await flushEventLoop();
      return times;
    }

    it('claims at once, and in a burst after growing gaps', async () => {
      assert.deepEqual(await burst(100), [0, 5, 15, 35, 55, 75, 95]);
    });

    it('loses no request of a burst', async () => {
      await burst(2);
      assert.equal(requests.length, 2);
      clock.advance(3);
      await flushEventLoop();
      assert.equal(requests.length, 3);
    });

    it('claims at once again after a quiet time', async () => {
      await burst(100);
      clock.advance(20);
      await flushEventLoop();
      clock.advance(41);
      await flushEventLoop();
      assert.deepEqual(await burst(10), [0, 5]);
    });

    it('does not wait for a freed slot to be refilled', async () => {
      pick = async ({ slots }) => claims(slots);
      loop.requestPoll();
      await flushEventLoop();
      runner.freeSlots = 1;
      pick = async () => claims(1);
      for (let i = 0; i < 3; i++) {
        const before = requests.length;
        runner.freeSlots = 1;
        freeCapacity();
        await flushEventLoop();
        assert.equal(requests.length, before + 1);
      }
    });
  });

  it('polls for a job with a later run time at that time', async () => {
    loop.start();
    await flushEventLoop();
    loop.wakeAt(new Date(clock.now().getTime() + 1200));
    loop.wakeAt(new Date(clock.now().getTime() + 3000));
    clock.advance(1199);
    await flushEventLoop();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(requests.length, 2);
    loop.wakeAt(clock.now());
    await flushEventLoop();
    assert.equal(requests.length, 3);
  });

  it('polls less often, and reads further ahead, while change events arrive', async () => {
    changes.intervalMultiplier = 6;
    nextDueAt = new Date(clock.now().getTime() + 20_000);
    loop.start();
    await flushEventLoop();
    clock.advance(19_999);
    await flushEventLoop();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(requests.length, 2);
    clock.advance(29_999);
    await flushEventLoop();
    assert.equal(requests.length, 2);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(requests.length, 3);
  });

  it('is saturated when claims have been full for a second, and reports when the backlog has drained', async () => {
    pick = async () => claims(2);
    loop.start();
    await flushEventLoop();
    clock.advance(999);
    await flushEventLoop();
    assert.equal(changes.isResting, false);
    // Also with long handlers in all slots, without a freed slot that would wake the loop.
    clock.advance(1);
    await flushEventLoop();
    assert.equal(changes.isResting, true);
    runner.freeSlots = 2;
    freeCapacity();
    await flushEventLoop();
    assert.equal(changes.isResting, true);
    runner.freeSlots = 2;
    pick = async () => claims(1);
    freeCapacity();
    await flushEventLoop();
    assert.equal(changes.isResting, false);
  });

  it('claims again at once when others were faster, because there may be more', async () => {
    contended = true;
    pick = async () => {
      contended = requests.length < 3;
      return [];
    };
    loop.start();
    await flushEventLoop();
    assert.equal(requests.length, 3);
  });

  it('claims again when a handler ends whose job had to be excluded', async () => {
    runner.excludedIds = ['zombie'];
    loop.start();
    await flushEventLoop();
    runner.excludedIds = [];
    freeCapacity();
    await flushEventLoop();
    assert.equal(requests.length, 2);
    freeCapacity();
    await flushEventLoop();
    assert.equal(requests.length, 2);
  });

  it('checks prefetched jobs more often than it polls', async () => {
    runner.prefetched = 1;
    loop.start();
    await flushEventLoop();
    clock.advance(1000);
    await flushEventLoop();
    assert.equal(requests.length, 2);
  });

  it('claims one job first after an idle time, in one round trip, then the others', async () => {
    loop.start();
    await flushEventLoop();
    pick = async ({ slots }) => claims(slots);
    clock.advance(5000);
    await flushEventLoop();
    assert.deepEqual(
      requests.map(({ slots, prefetch }) => [slots, prefetch]),
      [
        [2, 0],
        [1, 0],
        [1, 0],
      ],
    );
    assert.equal(accepted.length, 2);
  });
});

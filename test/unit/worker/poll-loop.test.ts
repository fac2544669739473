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
    queueRoom: undefined;
    stale: ClaimedJob[];
    started: number;
  };
  let settler: { pending: number };
  let requests: PickRequest[];
  let pick: (request: PickRequest) => Promise<ClaimedJob[]>;
  let accepted: ClaimedJob[];
  let released: ClaimedJob[];
  let nextDueAt: Date | null;
  let changes: { intervalMultiplier: number; isResting: boolean };
  let onCapacity: (freed: FreedCapacity) => void;
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
      queueRoom: undefined,
      stale: [],
      started: 0,
    };
    settler = { pending: 0 };
    [requests, accepted, released, nextDueAt] = [[], [], [], null];
    contended = false;
    changes = { intervalMultiplier: 1, isResting: false };
    pick = async () => [];
    const fakeRunner = Object.assign(runner, {
      takePrefetched: () => runner.stale.splice(0),
      onCapacity: (listener: (freed: FreedCapacity) => void) => (onCapacity = listener),
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
    const singleInstances: ConstructorParameters<typeof Claimer>[0]['singleInstances'] = {
      select: () => [],
      admit: async () => [],
      hasWaitingJobs: false,
    };
    claimer = new Claimer({ picker, runner: fakeRunner, inFlight: runner, uncertainClaims, singleInstances });
    loop = new PollLoop({
      clock,
      events: new EventBus('worker'),
      store: { nextDueAt: async ({ after }) => (nextDueAt !== null && nextDueAt > after ? nextDueAt : null) },
      claimer,
      runner: fakeRunner,
      settler,
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

  async function start(): Promise<void> {
    loop.start();
    await flushEventLoop();
  }

  /** How many claims the loop has made when this much more time has passed. */
  async function claimsAfter(ms: number): Promise<number> {
    clock.advance(ms);
    await flushEventLoop();
    return requests.length;
  }

  async function freeSlot(): Promise<void> {
    onCapacity({});
    await flushEventLoop();
  }

  it('claims jobs for the free slots at every poll interval', async () => {
    runner.excludedIds = ['running-here'];
    await start();
    assert.deepEqual(requests, [
      { slots: 2, prefetch: 0, withoutCrashSuspects: false, exclude: ['running-here'] },
    ]);
    assert.equal(await claimsAfter(4999), 1);
    assert.equal(await claimsAfter(1), 2);
  });

  it('polls earlier for a job that is due earlier', async () => {
    nextDueAt = new Date(clock.now().getTime() + 1200);
    await start();
    assert.equal(await claimsAfter(1199), 1);
    assert.equal(await claimsAfter(1), 2);
  });

  it('claims nothing without a free slot, and at once when one becomes free', async () => {
    pick = async () => claims(2);
    await start();
    assert.equal(accepted.length, 2);
    assert.equal(requests.length, 1);
    runner.freeSlots = 1;
    pick = async () => [];
    await freeSlot();
    assert.deepEqual(requests[1]?.slots, 1);
  });

  it('does not poll for each free slot when there was nothing more to claim', async () => {
    pick = async () => claims(1);
    await start();
    await freeSlot();
    assert.equal(requests.length, 1);
  });

  it('claims nothing while too many outcomes wait to be written', async () => {
    settler.pending = 2001;
    await start();
    assert.equal(requests.length, 0);
    settler.pending = 2000;
    await freeSlot();
    assert.equal(requests.length, 1);
  });

  it('releases jobs that it claimed while it was being stopped', async () => {
    const { promise, fire } = signal<ClaimedJob[]>();
    pick = () => promise;
    await start();
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
    await start();
    assert.deepEqual(released, stale);
  });

  it('polls at once for jobs behind a crash suspect', async () => {
    const [suspect] = claims(1);
    suspect!.job.crashes = 1;
    pick = async () => (requests.length === 1 ? [suspect!] : []);
    await start();
    assert.equal(requests.length, 2);
  });

  describe('when a poll is requested', () => {
    beforeEach(async () => {
      await start();
      clock.advance(100);
    });

    /** Requests a poll every millisecond and returns the times at which claims were made. */
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

    it('claims at once, and then at growing intervals during a burst', async () => {
      assert.deepEqual(await burst(100), [0, 5, 15, 35, 55, 75, 95]);
    });

    it('loses no request at the end of a burst', async () => {
      await burst(2);
      assert.equal(requests.length, 2);
      assert.equal(await claimsAfter(3), 3);
    });

    it('claims at once again after a quiet time', async () => {
      await burst(100);
      clock.advance(20);
      await flushEventLoop();
      clock.advance(41);
      await flushEventLoop();
      assert.deepEqual(await burst(10), [0, 5]);
    });

    it('refills a freed slot without waiting', async () => {
      pick = async ({ slots }) => claims(slots);
      loop.requestPoll();
      await flushEventLoop();
      runner.freeSlots = 1;
      pick = async () => claims(1);
      for (let i = 0; i < 3; i++) {
        const before = requests.length;
        runner.freeSlots = 1;
        await freeSlot();
        assert.equal(requests.length, before + 1);
      }
    });
  });

  it('polls for a job with a later run time at that time', async () => {
    await start();
    loop.wakeAt(new Date(clock.now().getTime() + 1200));
    loop.wakeAt(new Date(clock.now().getTime() + 3000));
    assert.equal(await claimsAfter(1199), 1);
    assert.equal(await claimsAfter(1), 2);
    loop.wakeAt(clock.now());
    await flushEventLoop();
    assert.equal(requests.length, 3);
  });

  it('polls less often, and looks further ahead for due jobs, while a change stream is open', async () => {
    changes.intervalMultiplier = 6;
    nextDueAt = new Date(clock.now().getTime() + 20_000);
    await start();
    assert.equal(await claimsAfter(19_999), 1);
    assert.equal(await claimsAfter(1), 2);
    assert.equal(await claimsAfter(29_999), 2);
    assert.equal(await claimsAfter(1), 3);
  });

  it('is saturated when claims have been full for a second, and reports when the backlog has drained', async () => {
    pick = async () => claims(2);
    await start();
    clock.advance(999);
    await flushEventLoop();
    assert.equal(changes.isResting, false);
    // No slot was freed in between: long handlers may occupy all of them.
    clock.advance(1);
    await flushEventLoop();
    assert.equal(changes.isResting, true);
    runner.freeSlots = 2;
    await freeSlot();
    assert.equal(changes.isResting, true);
    runner.freeSlots = 2;
    pick = async () => claims(1);
    await freeSlot();
    assert.equal(changes.isResting, false);
  });

  it('claims again at once when other workers were faster, because more jobs may be due', async () => {
    contended = true;
    pick = async () => {
      contended = requests.length < 3;
      return [];
    };
    await start();
    assert.equal(requests.length, 3);
  });

  it('claims again when a handler ends whose job had to be excluded', async () => {
    runner.excludedIds = ['running-here'];
    await start();
    runner.excludedIds = [];
    await freeSlot();
    assert.equal(requests.length, 2);
    await freeSlot();
    assert.equal(requests.length, 2);
  });

  it('checks prefetched jobs more often than it polls', async () => {
    runner.prefetched = 1;
    await start();
    assert.equal(await claimsAfter(1000), 2);
  });

  it('claims one job first after an idle time, in one round trip, then the others', async () => {
    await start();
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

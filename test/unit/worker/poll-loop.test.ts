import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { BufferSize } from '../../../src/worker/buffer-size.js';
import type { ClaimedJob } from '../../../src/worker/claimed-job.js';
import type { JobPicker, PickRequest } from '../../../src/worker/job-picker.js';
import type { JobRunner } from '../../../src/worker/job-runner.js';
import { PollLoop } from '../../../src/worker/poll-loop.js';
import type { Settler } from '../../../src/worker/settler.js';
import { aJob } from '../../support/a-job.js';
import { signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const claims = (count: number): ClaimedJob[] =>
  Array.from({ length: count }, () => ({ job: aJob(), token: 'token', lease: 60_000, sentAt: 0 }));

describe('PollLoop', () => {
  let clock: ManualClock;
  let loop: PollLoop;
  let runner: {
    freeSlots: number;
    waiting: number;
    sinceLastStart: number;
    hasSuspect: boolean;
    zombies: string[];
    stale: ClaimedJob[];
  };
  let pending: { pending: number };
  let requests: PickRequest[];
  let pick: (request: PickRequest) => Promise<ClaimedJob[]>;
  let accepted: ClaimedJob[];
  let givenBack: ClaimedJob[];
  let nextDueAt: Date | null;
  let patience: number;
  let sated: number;
  let contended: boolean;

  beforeEach(() => {
    clock = new ManualClock();
    runner = { freeSlots: 2, waiting: 0, sinceLastStart: 0, hasSuspect: false, zombies: [], stale: [] };
    pending = { pending: 0 };
    [requests, accepted, givenBack, nextDueAt] = [[], [], [], null];
    [patience, sated, contended] = [1, 0, false];
    pick = async () => [];
    const fakeRunner = Object.assign(runner, {
      takeWaiting: () => runner.stale.splice(0),
      accept: (claimed: readonly ClaimedJob[]) => {
        accepted.push(...claimed);
        runner.freeSlots -= claimed.length;
      },
    });
    loop = new PollLoop({
      clock,
      events: new EventBus(),
      store: { nextDueAt: async ({ after }) => (nextDueAt !== null && nextDueAt > after ? nextDueAt : null) },
      picker: {
        get isContended() {
          return contended;
        },
        pick: (request: PickRequest) => {
          requests.push(request);
          return pick(request);
        },
      } as unknown as JobPicker,
      runner: fakeRunner as unknown as JobRunner,
      settler: pending as Settler,
      bufferSize: new BufferSize(),
      queues: ['default'],
      taskTypes: () => ['work'],
      pollInterval: 5000,
      patience: () => patience,
      onSated: () => sated++,
      giveBack: async (claimed) => void givenBack.push(...claimed),
      exclusively: (work) => work(),
    });
  });

  afterEach(async () => {
    await loop.stop();
    assert.equal(clock.sleepers, 0);
  });

  it('claims for the free slots, at every poll interval', async () => {
    runner.zombies = ['zombie'];
    loop.start();
    await turns();
    assert.deepEqual(requests, [{ slots: 2, buffer: 0, withoutSuspects: false, exclude: ['zombie'] }]);
    clock.advance(4999);
    await turns();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(requests.length, 2);
  });

  it('comes earlier for a job that is due earlier', async () => {
    nextDueAt = new Date(clock.now().getTime() + 1200);
    loop.start();
    await turns();
    clock.advance(1199);
    await turns();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(requests.length, 2);
  });

  it('claims nothing while there is no room, and at once when there is some', async () => {
    pick = async () => claims(2);
    loop.start();
    await turns();
    assert.equal(accepted.length, 2);
    assert.equal(requests.length, 1);
    runner.freeSlots = 1;
    pick = async () => [];
    loop.roomMade();
    await turns();
    assert.deepEqual(requests[1]?.slots, 1);
  });

  it('does not ask at each free slot when there was nothing more to claim', async () => {
    pick = async () => claims(1);
    loop.start();
    await turns();
    loop.roomMade();
    await turns();
    assert.equal(requests.length, 1);
  });

  it('claims nothing while too many outcomes wait to be written', async () => {
    pending.pending = 2001;
    loop.start();
    await turns();
    assert.equal(requests.length, 0);
    pending.pending = 2000;
    loop.roomMade();
    await turns();
    assert.equal(requests.length, 1);
  });

  it('gives back what it claimed while it was stopped', async () => {
    const { promise, fire } = signal<ClaimedJob[]>();
    pick = () => promise;
    loop.start();
    await turns();
    const stopped = loop.stop();
    const late = claims(2);
    fire(late);
    await stopped;
    assert.deepEqual(givenBack, late);
    assert.deepEqual(accepted, []);
  });

  it('gives back what has waited too long for a slot', async () => {
    runner.stale = claims(1);
    const stale = [...runner.stale];
    loop.start();
    await turns();
    assert.deepEqual(givenBack, stale);
  });

  it('fetches at once what stood behind a suspect', async () => {
    const [suspect] = claims(1);
    suspect!.job.crashes = 1;
    pick = async () => (requests.length === 1 ? [suspect!] : []);
    loop.start();
    await turns();
    assert.equal(requests.length, 2);
  });

  describe('told that there may be something to claim', () => {
    beforeEach(async () => {
      loop.start();
      await turns();
      clock.advance(100);
    });

    /** How long after the first of them the claims of a burst start, which is told of every millisecond. */
    async function burst(length: number): Promise<number[]> {
      const times: number[] = [];
      for (let time = 0; time < length; time++) {
        const before = requests.length;
        loop.hint();
        loop.hint();
        await turns();
        if (requests.length > before) times.push(time);
        assert.ok(requests.length <= before + 1);
        clock.advance(1);
      }
      await turns();
      return times;
    }

    it('claims at once, and in a burst at gaps that grow', async () => {
      assert.deepEqual(await burst(100), [0, 5, 15, 35, 55, 75, 95]);
    });

    it('loses no hint of a burst', async () => {
      await burst(2);
      assert.equal(requests.length, 2);
      clock.advance(3);
      await turns();
      assert.equal(requests.length, 3);
    });

    it('claims at once again after a quiet while', async () => {
      await burst(100);
      clock.advance(20);
      await turns();
      clock.advance(41);
      await turns();
      assert.deepEqual(await burst(10), [0, 5]);
    });

    it('does not wait for a freed slot to be refilled', async () => {
      pick = async ({ slots }) => claims(slots);
      loop.hint();
      await turns();
      runner.freeSlots = 1;
      pick = async () => claims(1);
      for (let i = 0; i < 3; i++) {
        const before = requests.length;
        runner.freeSlots = 1;
        loop.roomMade();
        await turns();
        assert.equal(requests.length, before + 1);
      }
    });
  });

  it('told of a job that is due later, it comes then and not before', async () => {
    loop.start();
    await turns();
    loop.dueAt(new Date(clock.now().getTime() + 1200));
    loop.dueAt(new Date(clock.now().getTime() + 3000));
    clock.advance(1199);
    await turns();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(requests.length, 2);
    loop.dueAt(clock.now());
    await turns();
    assert.equal(requests.length, 3);
  });

  it('polls more rarely, and looks further ahead, while something tells of new jobs', async () => {
    patience = 6;
    nextDueAt = new Date(clock.now().getTime() + 20_000);
    loop.start();
    await turns();
    clock.advance(19_999);
    await turns();
    assert.equal(requests.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(requests.length, 2);
    clock.advance(29_999);
    await turns();
    assert.equal(requests.length, 2);
    clock.advance(1);
    await turns();
    assert.equal(requests.length, 3);
  });

  it('is busy when claims have come back full for a second, and says when they do no more', async () => {
    pick = async () => claims(2);
    loop.start();
    await turns();
    clock.advance(999);
    assert.equal(loop.isBusy, false);
    clock.advance(1);
    assert.equal(loop.isBusy, true);
    runner.freeSlots = 2;
    loop.roomMade();
    await turns();
    assert.deepEqual([loop.isBusy, sated], [true, 0]);
    runner.freeSlots = 2;
    pick = async () => claims(1);
    loop.roomMade();
    await turns();
    assert.deepEqual([loop.isBusy, sated], [false, 1]);
  });

  it('claims again at once when others were first: there may be more', async () => {
    contended = true;
    pick = async () => {
      contended = requests.length < 3;
      return [];
    };
    loop.start();
    await turns();
    assert.equal(requests.length, 3);
  });

  it('claims again when a handler is through whose job it had to leave out', async () => {
    runner.zombies = ['zombie'];
    loop.start();
    await turns();
    runner.zombies = [];
    loop.roomMade();
    await turns();
    assert.equal(requests.length, 2);
    loop.roomMade();
    await turns();
    assert.equal(requests.length, 2);
  });

  it('looks after the buffer more often than it polls', async () => {
    runner.waiting = 1;
    loop.start();
    await turns();
    clock.advance(1000);
    await turns();
    assert.equal(requests.length, 2);
  });

  it('takes one job first after a time without, in one round trip, and then what else there is', async () => {
    loop.start();
    await turns();
    pick = async ({ slots }) => claims(slots);
    clock.advance(5000);
    await turns();
    assert.deepEqual(
      requests.map(({ slots, buffer }) => [slots, buffer]),
      [
        [2, 0],
        [1, 0],
        [1, 0],
      ],
    );
    assert.equal(accepted.length, 2);
  });
});

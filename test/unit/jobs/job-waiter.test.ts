import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import type { AttemptKey } from '../../../src/domain/job/execution.js';
import { type FinishedJob, isFinished, type JobDocument } from '../../../src/domain/job/job.js';
import { JobWaiter } from '../../../src/jobs/job-waiter.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { ChangeSubscriber } from '../../../src/worker/change-listener.js';
import { recordEvents } from '../../support/events.js';
import { aJob } from '../../support/factories/job.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { ManualClock } from '../../support/manual-clock.js';
import { rejectionOf } from '../../support/rejection.js';

const SECOND = 1000;

/** The listener as the waiter sees it; a test decides when its stream is open. */
class FakeChanges {
  readonly requests: string[][] = [];
  awaitedInStream: ReadonlySet<string> = new Set();
  intervalMultiplier = 1;
  isStopped = false;
  subscriber: ChangeSubscriber | undefined;

  subscribe(subscriber: ChangeSubscriber): void {
    this.subscriber = subscriber;
  }

  setAwaited(jobs: ReadonlySet<string>): void {
    this.requests.push([...jobs]);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
  }

  /** The stream is open with the jobs that were last asked for. */
  open(): void {
    this.awaitedInStream = new Set(this.requests.at(-1));
    this.intervalMultiplier = 6;
    this.subscriber?.onMissedChanges();
  }
}

describe('JobWaiter', () => {
  let clock: ManualClock;
  let events: EventBus;
  let waiter: JobWaiter;
  let changes: FakeChanges;
  let jobs: Map<string, JobDocument>;
  let rows: AttemptKey[];
  let reads: string[][];
  let failure: Error | undefined;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    changes = new FakeChanges();
    jobs = new Map();
    [rows, reads, failure] = [[], [], undefined];
    const find = (ids: readonly string[]): JobDocument[] =>
      ids.map((id) => jobs.get(id)).filter((job) => job !== undefined);
    waiter = new JobWaiter({
      ...{ clock, events, changes, options: { pollInterval: 5 * SECOND } },
      store: {
        findStates: async (ids) => {
          reads.push([...ids]);
          if (failure !== undefined) throw failure;
          return new Map(find(ids).map((job) => [job._id, job]));
        },
        findFinished: async (ids) => find(ids).filter((job): job is FinishedJob => isFinished(job.status)),
        findAttemptKeys: async (ids) => rows.filter(({ _id }) => ids.includes(_id)),
      },
    });
  });

  afterEach(async () => {
    await waiter.stop();
    assert.deepEqual([clock.sleepers, changes.isStopped], [0, true]);
  });

  function add(...added: JobDocument[]): string[] {
    for (const job of added) jobs.set(job._id, job);
    return added.map(({ _id }) => _id);
  }

  /** With the row of its attempt, unless `logged` is false. */
  function complete(id: string, { logged = true } = {}): void {
    jobs.set(id, { ...aJob({ status: 'COMPLETED', finishedAt: clock.now() }), _id: id });
    if (logged) rows.push({ _id: `${id}:1`, jobId: id, fence: 1, lockToken: 'token', outcome: 'completed' });
  }

  async function advance(ms: number): Promise<void> {
    clock.advance(ms);
    await flushEventLoop();
  }

  /** A wait that has been read once. */
  async function wait(id: string, timeout = Infinity): Promise<{ ended: Promise<FinishedJob> }> {
    const ended = waiter.wait(id, timeout);
    ended.catch(() => undefined);
    await flushEventLoop();
    return { ended };
  }

  it('resolves at once for a job that is finished', async () => {
    complete('a');
    assert.equal((await waiter.wait('a', Infinity))._id, 'a');
    assert.deepEqual(reads, [['a']]);
  });

  it('reads all awaited jobs together', async () => {
    const ids = add(aJob(), aJob(), aJob());
    const ended = Promise.all(ids.map((id) => waiter.wait(id, Infinity)));
    await flushEventLoop();
    for (const id of ids) complete(id);
    await advance(20);
    assert.equal((await ended).length, 3);
    assert.deepEqual(reads, [ids, ids]);
  });

  it('reads at most a thousand jobs per query', async () => {
    const ids = add(...Array.from({ length: 2500 }, () => aJob()));
    for (const id of ids) waiter.wait(id, Infinity).catch(() => undefined);
    await flushEventLoop();
    assert.deepEqual(
      reads.map(({ length }) => length),
      [1000, 1000, 500],
    );
  });

  it('shares the reads of several waits for the same job', async () => {
    const [id = ''] = add(aJob());
    const both = Promise.all([waiter.wait(id, Infinity), waiter.wait(id, Infinity)]);
    await flushEventLoop();
    complete(id);
    await advance(20);
    assert.equal((await both).length, 2);
    assert.deepEqual(reads, [[id], [id]]);
  });

  it('polls at growing intervals, up to a second, without a stream', async () => {
    const [id = ''] = add(aJob());
    await wait(id);
    const gaps: number[] = [];
    for (let ms = 0, last = 0; ms < 20 * SECOND; ms += 10) {
      const before = reads.length;
      await advance(10);
      if (reads.length === before) continue;
      gaps.push(ms + 10 - last);
      last = ms + 10;
    }
    assert.deepEqual(gaps.slice(0, 4), [20, 20, 20, 20]);
    assert.ok(Math.max(...gaps) <= SECOND + 10 && gaps.at(-1)! >= SECOND, String(gaps));
    assert.ok(
      gaps.every((gap, index) => gap + 10 >= (gaps[index - 1] ?? 0)),
      `they grow: ${String(gaps)}`,
    );
  });

  it('reads a job at once that ended in this process', async () => {
    const [id = ''] = add(aJob());
    const { ended } = await wait(id);
    complete(id);
    const attempt = { taskType: 'work', queue: 'default', attempt: 1, fence: 1 };
    events.emit('job:complete', { ...attempt, jobId: 'another', result: null, duration: 1 });
    events.emit('job:complete', { ...attempt, jobId: id, result: null, duration: 1 });
    assert.equal((await ended)._id, id);
    assert.deepEqual(reads, [[id], [id]]);
  });

  describe('with a change stream', () => {
    let ids: string[];

    beforeEach(() => {
      ids = add(aJob(), aJob());
    });

    it('asks for no stream if jobs end soon', async () => {
      const { ended } = await wait(ids[0]!);
      await advance(100);
      complete(ids[0]!);
      await advance(100);
      await ended;
      assert.deepEqual(changes.requests, []);
    });

    it('adds jobs to the stream that have been awaited for some time, at most once per second', async () => {
      await wait(ids[0]!);
      for (let ms = 0; ms < 500; ms += 50) await advance(50);
      assert.deepEqual(changes.requests, [[ids[0]]]);
      changes.open();
      await wait(ids[1]!);
      for (let ms = 0; ms < 500; ms += 50) await advance(50);
      assert.equal(changes.requests.length, 1, 'not within a second');
      for (let ms = 0; ms < 500; ms += 50) await advance(50);
      assert.deepEqual(changes.requests.slice(1), [ids]);
    });

    it('reads a job rarely that the stream reports, and at once when it does', async () => {
      const { ended } = await wait(ids[0]!);
      for (let ms = 0; ms < 500; ms += 50) await advance(50);
      changes.open();
      await flushEventLoop();
      reads = [];
      for (let s = 0; s < 29; s++) await advance(SECOND);
      assert.deepEqual(reads, [], 'six times the poll interval');
      await advance(SECOND);
      assert.deepEqual(reads, [[ids[0]]]);
      complete(ids[0]!);
      const batch = { schedules: false, dueAt: undefined, cancelled: new Set<string>() };
      changes.subscriber?.onChanges({ ...batch, ended: new Set([ids[0]!, 'unknown']) });
      assert.equal((await ended)._id, ids[0]);
    });

    it('reads all jobs again if changes may have been missed', async () => {
      await wait(ids[0]!);
      await wait(ids[1]!);
      reads = [];
      changes.subscriber?.onMissedChanges();
      await flushEventLoop();
      assert.deepEqual(reads, [ids]);
    });

    it('lets go of the stream when nobody has waited for ten seconds', async () => {
      const { ended } = await wait(ids[0]!);
      for (let ms = 0; ms < 500; ms += 50) await advance(50);
      changes.open();
      complete(ids[0]!);
      await advance(30 * SECOND);
      await ended;
      await advance(9 * SECOND);
      assert.equal(changes.requests.length, 1);
      await advance(SECOND);
      assert.deepEqual(changes.requests.slice(1), [[]]);
    });
  });

  describe('a job without the row of its last attempt', () => {
    it('is read until the row is there', async () => {
      const [id = ''] = add(aJob());
      const { ended } = await wait(id);
      complete(id, { logged: false });
      await advance(20);
      await advance(500);
      assert.equal(await Promise.race([ended, Promise.resolve('waits')]), 'waits');
      complete(id);
      await advance(20);
      assert.equal((await ended)._id, id);
    });

    it('is returned after two seconds: its worker may have died in between', async () => {
      const [id = ''] = add(aJob());
      const { ended } = await wait(id);
      complete(id, { logged: false });
      await advance(20);
      for (let ms = 0; ms < 1900; ms += 100) await advance(100);
      assert.equal(await Promise.race([ended, Promise.resolve('waits')]), 'waits');
      await advance(100);
      assert.equal((await ended)._id, id);
    });

    it('is returned at once if it finished long ago: the log keeps rows for a limited time', async () => {
      complete('a', { logged: false });
      clock.advance(60 * SECOND);
      assert.equal((await waiter.wait('a', Infinity))._id, 'a');
    });

    it('is returned at once if it never started', async () => {
      const [id = ''] = add(aJob({ status: 'CANCELLED', finishedAt: clock.now() }));
      assert.equal((await waiter.wait(id, Infinity))._id, id);
    });

    it('is returned when the time of the wait is over', async () => {
      complete('a', { logged: false });
      const { ended } = await wait('a', 100);
      await advance(100);
      assert.equal((await ended)._id, 'a');
    });
  });

  describe('with a timeout', () => {
    it('says in which state the job still is', async () => {
      const [id = ''] = add(aJob({ status: 'RUNNING' }));
      const { ended } = await wait(id, 5 * SECOND);
      await advance(5 * SECOND);
      const { code, message } = await rejectionOf(ended);
      assert.deepEqual([code, message], ['WAIT_TIMEOUT', `job '${id}' is still running after 5000 ms`]);
    });

    it('reads the job at least once, however short it is', async () => {
      complete('a');
      assert.equal((await waiter.wait('a', 0))._id, 'a');
    });

    it('ends during an outage, too', async () => {
      failure = new mongo.MongoNetworkError('no primary');
      const { ended } = await wait('a', 5 * SECOND);
      await advance(5 * SECOND);
      await advance(SECOND);
      assert.equal((await rejectionOf(ended)).code, 'WAIT_TIMEOUT');
    });

    it('does not end the waits of others for the same job', async () => {
      const [id = ''] = add(aJob());
      const [short, long] = [await wait(id, 100), await wait(id)];
      await advance(100);
      await rejectionOf(short.ended);
      complete(id);
      await advance(SECOND);
      assert.equal((await long.ended)._id, id);
    });
  });

  it('rejects if the job does not exist', async () => {
    assert.equal((await rejectionOf(waiter.wait('a', Infinity))).code, 'JOB_NOT_FOUND');
  });

  it('rejects with an error of the database that a retry does not change', async () => {
    failure = new Error('not authorized');
    assert.equal(await rejectionOf(waiter.wait('a', Infinity)), failure);
  });

  it('rejects on stop(), and from then on', async () => {
    const [id = ''] = add(aJob());
    const { ended } = await wait(id);
    await waiter.stop();
    for (const wait of [ended, waiter.wait(id, Infinity)])
      assert.equal((await rejectionOf(wait)).code, 'WRONG_STATE');
  });

  it('keeps trying during an outage, and reports it', async () => {
    const reports = recordEvents(events, 'worker:error');
    const [id = ''] = add(aJob());
    failure = new mongo.MongoNetworkError('no primary');
    const { ended } = await wait(id);
    for (let s = 0; s < 10; s++) await advance(SECOND);
    complete(id);
    failure = undefined;
    await advance(SECOND);
    assert.equal((await ended)._id, id);
    assert.ok(reports.length > 1);
  });
});

import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { News, WatchRequest } from '../../../src/store/watch.js';
import { Watch } from '../../../src/worker/watch.js';
import { recordEvents } from '../../support/events.js';
import { START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const HOUR = 3_600_000;
type Told = News | 'open' | 'quiet';

/** A stream that a test feeds: news, an error, or its end. */
class Stream {
  readonly signal: AbortSignal;
  readonly request: WatchRequest;
  #feed: ((next: Told | Error | undefined) => void) | undefined;
  closed = false;

  constructor(request: WatchRequest, signal: AbortSignal) {
    this.request = request;
    this.signal = signal;
  }

  get isRead(): boolean {
    return this.#feed !== undefined;
  }

  async feed(next?: Told | Error): Promise<void> {
    await turns();
    assert.ok(this.#feed !== undefined, 'nobody waits for news');
    this.#feed(next);
    this.#feed = undefined;
    await turns();
  }

  async *news(): AsyncGenerator<Told, void> {
    try {
      while (!this.signal.aborted) {
        const next = await new Promise<Told | Error | undefined>((resolve) => {
          this.#feed = resolve;
          this.signal.addEventListener('abort', () => resolve(undefined));
        });
        if (next instanceof Error) throw next;
        if (next === undefined) return;
        yield next;
      }
    } finally {
      this.closed = true;
    }
  }
}

describe('Watch', () => {
  let clock: ManualClock;
  let events: EventBus;
  let watch: Watch;
  let streams: Stream[];
  let heard: News[];
  let gaps: number;
  let taskTypes: string[];
  let isBusy: boolean;

  const news: News = { schedules: false, dueAt: START, cancelled: new Set() };

  beforeEach(async () => {
    clock = new ManualClock();
    events = new EventBus();
    [streams, heard, gaps, taskTypes, isBusy] = [[], [], 0, ['work'], false];
    watch = new Watch({
      clock,
      events,
      queues: ['default'],
      taskTypes: () => taskTypes,
      pollInterval: 5000,
      isBusy: () => isBusy,
      onNews: (one) => heard.push(one),
      onGap: () => gaps++,
      store: {
        watch: (request, signal) => {
          const stream = new Stream(request, signal);
          streams.push(stream);
          return stream.news();
        },
      },
    });
    watch.start();
    await turns();
  });

  afterEach(async () => {
    await watch.stop();
    assert.deepEqual([clock.sleepers, streams.every(({ closed }) => closed)], [0, true]);
  });

  /** Streams are numbered from 0. */
  const open = (number = streams.length - 1): Promise<void> => streams[number]!.feed('open');

  it('F1 B2 hands on what it hears; when the stream opens everybody looks, because nobody saw what came before', async () => {
    await open();
    assert.deepEqual([heard, gaps], [[], 1]);
    for (const one of ['quiet', news, 'quiet'] as const) {
      clock.advance(100);
      await streams[0]!.feed(one);
    }
    assert.deepEqual([heard, gaps, streams.length], [[news], 1, 1]);
  });

  it('C1 what comes in a burst is read together, after gaps that grow', async () => {
    await open();
    await streams[0]!.feed(news);
    for (const gap of [5, 10, 20, 20]) {
      clock.advance(gap - 1);
      await turns();
      assert.equal(streams[0]!.isRead, false, `not yet after ${gap} ms`);
      clock.advance(1);
      await streams[0]!.feed(news);
    }
    clock.advance(100);
    await streams[0]!.feed('quiet');
    assert.equal(streams[0]!.isRead, true);
  });

  it('C1 polls may wait longer while the stream is open, and only then', async () => {
    assert.equal(watch.patience, 1);
    await open();
    assert.equal(watch.patience, 6);
    await streams[0]!.feed(new Error('cursor killed'));
    assert.equal(watch.patience, 1);
    clock.advance(250);
    await turns();
    await open();
    assert.equal(watch.patience, 6);
    await watch.stop();
    assert.equal(watch.patience, 1);
  });

  it('B2 Y9 a stream that breaks is reported and opened again, with backoff; everybody looks meanwhile', async () => {
    const troubles = recordEvents(events, 'worker:trouble', 'worker:recovered');
    await open();
    await streams[0]!.feed(new Error('cursor killed'));
    assert.deepEqual([streams.length, gaps], [1, 2]);
    clock.advance(250);
    await turns();
    await streams[1]!.feed(new Error('still'));
    clock.advance(499);
    await turns();
    assert.equal(streams.length, 2, 'not before its time');
    clock.advance(1);
    await turns();
    await open(2);
    assert.equal(gaps, 3, 'what happened meanwhile is looked for, once');
    assert.deepEqual(
      troubles.map(({ name, event }) => [name, (event as { operation: string }).operation]),
      [
        ['worker:trouble', 'watch for changes'],
        ['worker:trouble', 'watch for changes'],
        ['worker:recovered', 'watch for changes'],
      ],
    );
  });

  it('F1 a server without change streams is no trouble: it is asked again after an hour', async () => {
    const troubles = recordEvents(events, 'worker:trouble');
    await streams[0]!.feed(Object.assign(new Error('only on replica sets'), { code: 40_573 }));
    assert.deepEqual([troubles, streams.length, watch.patience], [[], 1, 1]);
    watch.reopen();
    watch.listen();
    clock.advance(HOUR - 1);
    await turns();
    assert.equal(streams.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(streams.length, 2);
  });

  it('C12 stop closes the stream while it waits; a new start opens a new one', async () => {
    await open();
    await watch.stop();
    assert.deepEqual([streams[0]!.signal.aborted, streams[0]!.closed], [true, true]);
    watch.start();
    await turns();
    await open();
    assert.deepEqual([streams.length, streams[1]!.signal.aborted, gaps], [2, false, 2]);
  });

  it('C12 stop closes a stream that is not being read just now', async () => {
    await open();
    await streams[0]!.feed(news);
    assert.equal(streams[0]!.isRead, false);
    await watch.stop();
    assert.equal(streams[0]!.closed, true);
  });

  it('J18 new task types are heard of at once', async () => {
    await open();
    taskTypes = ['work', 'more'];
    watch.reopen();
    watch.reopen();
    await turns();
    assert.deepEqual([streams[0]!.closed, streams.length], [true, 2]);
    assert.deepEqual(streams[1]!.request.taskTypes, ['work', 'more']);
    await open();
    assert.equal(gaps, 2);
  });

  describe('with more than enough to do', () => {
    beforeEach(async () => {
      await open();
      isBusy = true;
      await streams[0]!.feed(news);
      clock.advance(5);
      await turns();
    });

    it('C1 has no stream, and polls find within a second what that would have told', async () => {
      assert.deepEqual([heard.length, streams[0]!.closed], [1, true], 'what was read is not lost');
      assert.equal(gaps, 2, 'everybody looks, and again soon');
      assert.equal(watch.patience * 5000, 1000);
      for (let i = 0; i < 3; i++) {
        clock.advance(500);
        await turns();
      }
      assert.deepEqual([streams.length, gaps], [1, 2]);
    });

    it('C1 listens again as soon as there is room for more, and everybody looks', async () => {
      isBusy = false;
      watch.listen();
      await turns();
      assert.equal(streams.length, 2);
      assert.equal(watch.patience, 1);
      await open();
      assert.deepEqual([gaps, watch.patience], [3, 6]);
    });

    it('C12 may be stopped', async () => {
      await watch.stop();
      assert.equal(clock.sleepers, 0);
    });
  });
});

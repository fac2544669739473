import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { ScheduleWatch } from '../../../src/schedules/schedule-watch.js';
import type { ScheduleNews } from '../../../src/store/watch-schedules.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const HOUR = 3_600_000;

/** A stream that a test feeds: news, an error, or its end. */
class Stream {
  readonly signal: AbortSignal;
  #feed: ((next: ScheduleNews | Error | undefined) => void) | undefined;
  closed = false;

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  async feed(next?: ScheduleNews | Error): Promise<void> {
    await turns();
    assert.ok(this.#feed !== undefined, 'nobody waits for news');
    this.#feed(next);
    this.#feed = undefined;
    await turns();
  }

  async *news(): AsyncGenerator<ScheduleNews, void> {
    try {
      while (!this.signal.aborted) {
        const next = await new Promise<ScheduleNews | Error | undefined>((resolve) => {
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

describe('ScheduleWatch', () => {
  let clock: ManualClock;
  let events: EventBus;
  let watch: ScheduleWatch;
  let streams: Stream[];
  let changes: number;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    [streams, changes] = [[], 0];
    const watchSchedules = (signal: AbortSignal): AsyncGenerator<ScheduleNews, void> => {
      const stream = new Stream(signal);
      streams.push(stream);
      return stream.news();
    };
    watch = new ScheduleWatch(clock, events, { watchSchedules }, () => changes++);
    watch.start();
  });

  afterEach(() => watch.stop());

  it('F1 B2 a change wakes; so does the stream when it opens, because nobody saw what came before; quiet does not', async () => {
    await turns();
    await streams[0]!.feed('open');
    assert.equal(changes, 1);
    for (const news of ['change', 'quiet', 'quiet', 'change'] as const) await streams[0]!.feed(news);
    assert.equal(changes, 3);
    assert.equal(streams.length, 1, 'one stream all along');
  });

  it('B2 Y9 a stream that breaks is reported and opened again, with backoff', async () => {
    const troubles = recordEvents(events, 'worker:trouble', 'worker:recovered');
    await turns();
    await streams[0]!.feed('open');
    await streams[0]!.feed(new Error('cursor killed'));
    assert.equal(streams.length, 1);
    clock.advance(250);
    await turns();
    await streams[1]!.feed(new Error('still'));
    clock.advance(499);
    await turns();
    assert.equal(streams.length, 2, 'not before its time');
    clock.advance(1);
    await turns();
    await streams[2]!.feed('open');
    assert.equal(changes, 2, 'what changed meanwhile is looked for');
    assert.deepEqual(
      troubles.map(({ name, event }) => [name, (event as { operation: string }).operation]),
      [
        ['worker:trouble', 'watch schedules'],
        ['worker:trouble', 'watch schedules'],
        ['worker:recovered', 'watch schedules'],
      ],
    );
  });

  it('B2 a stream that ends is opened again', async () => {
    await turns();
    await streams[0]!.feed();
    await turns();
    assert.equal(streams.length, 2);
  });

  it('F1 a server without change streams is no trouble: it is asked again after an hour', async () => {
    const troubles = recordEvents(events, 'worker:trouble');
    await turns();
    await streams[0]!.feed(Object.assign(new Error('only on replica sets'), { code: 40_573 }));
    assert.deepEqual([troubles, streams.length], [[], 1]);
    clock.advance(HOUR - 1);
    await turns();
    assert.equal(streams.length, 1);
    clock.advance(1);
    await turns();
    assert.equal(streams.length, 2);
  });

  it('C12 stop closes the stream while it waits; a new start opens a new one', async () => {
    await turns();
    await streams[0]!.feed('open');
    await watch.stop();
    assert.deepEqual([streams[0]!.signal.aborted, streams[0]!.closed], [true, true]);
    watch.start();
    await turns();
    await streams[1]!.feed('open');
    assert.deepEqual([streams.length, streams[1]!.signal.aborted, changes], [2, false, 2]);
  });
});

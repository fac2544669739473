import assert from 'node:assert/strict';
import type { HandlerRegistry } from '../../../src/handlers/handler-registry.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { ChangeBatch, ChangeStreamRequest } from '../../../src/store/change-stream.js';
import { ChangeListener } from '../../../src/worker/change-listener.js';
import { nextEvent, recordEvents } from '../../support/events.js';
import { START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const HOUR = 3_600_000;
type StreamItem = ChangeBatch | 'open' | 'quiet';

/** A change stream that a test feeds with items, an error, or its end. */
class FakeStream {
  readonly signal: AbortSignal;
  readonly request: ChangeStreamRequest;
  #feed: ((next: StreamItem | Error | undefined) => void) | undefined;
  closed = false;
  /** Until it is fed. */
  ignoresAbort = false;

  constructor(request: ChangeStreamRequest, signal: AbortSignal) {
    this.request = request;
    this.signal = signal;
  }

  get isRead(): boolean {
    return this.#feed !== undefined;
  }

  async feed(next?: StreamItem | Error): Promise<void> {
    await flushEventLoop();
    assert.ok(this.#feed !== undefined, 'the stream is not being read');
    this.#feed(next);
    this.#feed = undefined;
    await flushEventLoop();
  }

  async *items(): AsyncGenerator<StreamItem, void> {
    try {
      while (!this.signal.aborted) {
        const next = await new Promise<StreamItem | Error | undefined>((resolve) => {
          this.#feed = resolve;
          this.signal.addEventListener('abort', () => {
            if (!this.ignoresAbort) resolve(undefined);
          });
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

describe('ChangeListener', () => {
  let clock: ManualClock;
  let events: EventBus;
  let listener: ChangeListener;
  let streams: FakeStream[];
  let received: ChangeBatch[];
  let missed: number;
  let registry: HandlerRegistry;

  const batch: ChangeBatch = { schedules: false, dueAt: START, cancelled: new Set(), ended: new Set() };

  beforeEach(async () => {
    clock = new ManualClock();
    events = new EventBus('worker');
    [streams, received, missed, registry] = [[], [], 0, aRegistry()];
    registry.register('work', () => undefined);
    listener = create();
    listener.start();
    await flushEventLoop();
  });

  function create({ usesMongos = false } = {}, Listener = ChangeListener): ChangeListener {
    const created = new Listener({
      clock,
      events,
      registry,
      usesMongos,
      options: { queues: ['default'], pollInterval: 5000 },
      store: {
        watchChanges: (request, signal) => {
          const stream = new FakeStream(request, signal);
          streams.push(stream);
          return stream.items();
        },
      },
    });
    created.subscribe({ onChanges: (changes) => received.push(changes), onMissedChanges: () => missed++ });
    return created;
  }

  afterEach(async () => {
    await listener.stop();
    assert.deepEqual([clock.sleepers, streams.every(({ closed }) => closed)], [0, true]);
  });

  /** The last stream by default. */
  const open = (number = streams.length - 1): Promise<void> => streams[number]!.feed('open');

  it('passes changes to its subscribers, and makes them re-read when the stream opens [F1] [B2]', async () => {
    await open();
    assert.deepEqual([received, missed], [[], 1]);
    for (const item of ['quiet', batch, 'quiet'] as const) {
      clock.advance(100);
      await streams[0]!.feed(item);
    }
    assert.deepEqual([received, missed, streams.length], [[batch], 1, 1]);
  });

  it('reads a burst of changes together, at growing intervals [C1]', async () => {
    await open();
    await streams[0]!.feed(batch);
    for (const gap of [5, 10, 20, 20]) {
      clock.advance(gap - 1);
      await flushEventLoop();
      assert.equal(streams[0]!.isRead, false, `not read before ${gap} ms`);
      clock.advance(1);
      await streams[0]!.feed(batch);
    }
    clock.advance(100);
    await streams[0]!.feed('quiet');
    assert.equal(streams[0]!.isRead, true);
  });

  it('opens another stream when one hangs, and ignores what the first still reports', async () => {
    await listener.stop();
    const reported = nextEvent(events, 'worker:error');
    listener = create(
      {},
      class extends ChangeListener {
        protected override get maxRoundTime(): number {
          return streams.length === 1 ? 20 : 60_000;
        }
      },
    );
    listener.start();
    await flushEventLoop();
    const hung = streams[1]!;
    hung.ignoresAbort = true;
    clock.advance(5000);
    await reported;
    await flushEventLoop();
    clock.advance(250);
    await flushEventLoop();
    assert.deepEqual([streams.length, missed], [3, 1]);
    await hung.feed('open');
    assert.equal(listener.intervalMultiplier, 1, 'the second stream is not open yet');
    assert.equal(hung.closed, true);
    await open();
    assert.equal(listener.intervalMultiplier, 6);
  });

  it('lets polls be less frequent while the stream is open, and only then [C1]', async () => {
    assert.equal(listener.intervalMultiplier, 1);
    await open();
    assert.equal(listener.intervalMultiplier, 6);
    await streams[0]!.feed(new Error('cursor killed'));
    assert.equal(listener.intervalMultiplier, 1);
    clock.advance(250);
    await flushEventLoop();
    await open();
    assert.equal(listener.intervalMultiplier, 6);
    await listener.stop();
    assert.equal(listener.intervalMultiplier, 1);
  });

  describe('through mongos', () => {
    beforeEach(async () => {
      await listener.stop();
      listener = create({ usesMongos: true });
      listener.start();
      await flushEventLoop();
      await open();
    });

    it('does not make polls less frequent: changes are reported late there [B19]', () => {
      assert.equal(listener.intervalMultiplier, 1);
    });

    it('passes changes on [B19]', async () => {
      await streams[1]!.feed(batch);
      assert.deepEqual(received, [batch]);
    });

    it('is not opened again for awaited jobs, because polls find their end sooner [B19]', async () => {
      listener.setAwaited(new Set(['a']));
      await flushEventLoop();
      assert.deepEqual([streams.length, [...listener.awaitedInStream]], [2, []]);
      await listener.stop();
      listener.setAwaited(new Set(['b']));
      await flushEventLoop();
      assert.equal(streams.length, 2, 'a process without a worker needs no stream');
    });
  });

  it('reports a stream that breaks and opens it again with backoff; meanwhile subscribers re-read [B2] [Y9]', async () => {
    const reports = recordEvents(events, 'worker:error', 'worker:recovered');
    await open();
    await streams[0]!.feed(new Error('cursor killed'));
    assert.deepEqual([streams.length, missed], [1, 2]);
    clock.advance(250);
    await flushEventLoop();
    await streams[1]!.feed(new Error('still'));
    clock.advance(499);
    await flushEventLoop();
    assert.equal(streams.length, 2, 'not before the backoff');
    clock.advance(1);
    await flushEventLoop();
    await open(2);
    assert.equal(missed, 3, 'subscribers re-read once');
    assert.deepEqual(
      reports.map(({ name, event }) => [name, (event as { operation: string }).operation]),
      [
        ['worker:error', 'watch changes'],
        ['worker:error', 'watch changes'],
        ['worker:recovered', 'watch changes'],
      ],
    );
  });

  it('reports no error for a server without change streams and tries again after an hour [F1]', async () => {
    const reports = recordEvents(events, 'worker:error');
    await streams[0]!.feed(Object.assign(new Error('only on replica sets'), { code: 40_573 }));
    assert.deepEqual([reports, streams.length, listener.intervalMultiplier], [[], 1, 1]);
    registry.register('more', () => undefined);
    listener.resume();
    clock.advance(HOUR - 1);
    await flushEventLoop();
    assert.equal(streams.length, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(streams.length, 2);
  });

  it('closes the stream in stop() while it waits, and opens a new one when it is started again [C12]', async () => {
    await open();
    await listener.stop();
    assert.deepEqual([streams[0]!.signal.aborted, streams[0]!.closed], [true, true]);
    listener.start();
    await flushEventLoop();
    await open();
    assert.deepEqual([streams.length, streams[1]!.signal.aborted, missed], [2, false, 2]);
  });

  it('closes a stream in stop() that is not being read [C12]', async () => {
    await open();
    await streams[0]!.feed(batch);
    assert.equal(streams[0]!.isRead, false);
    await listener.stop();
    assert.equal(streams[0]!.closed, true);
  });

  it('includes new task types at once [J18]', async () => {
    await open();
    registry.register('more', () => undefined);
    registry.register('most', () => undefined);
    await flushEventLoop();
    assert.deepEqual([streams[0]!.closed, streams.length], [true, 2]);
    assert.deepEqual(streams[1]!.request.work?.taskTypes, ['work', 'more', 'most']);
    await open();
    assert.equal(missed, 2);
  });

  describe('with awaited jobs', () => {
    const request = (number: number): ChangeStreamRequest => streams[number]!.request;

    it('opens the stream again with them, and subscribers re-read', async () => {
      await open();
      listener.setAwaited(new Set(['a', 'b']));
      assert.deepEqual([...listener.awaitedInStream], [], 'not before the new stream is open');
      await flushEventLoop();
      await open(1);
      assert.deepEqual([[...request(1).awaited], request(1).work?.taskTypes], [['a', 'b'], ['work']]);
      assert.deepEqual([[...listener.awaitedInStream], missed], [['a', 'b'], 2]);
    });

    it('keeps the stream if it includes them already', async () => {
      await open();
      listener.setAwaited(new Set(['a', 'b']));
      await flushEventLoop();
      await open(1);
      for (const jobs of [['b'], []]) {
        listener.setAwaited(new Set(jobs));
        await flushEventLoop();
      }
      assert.deepEqual([streams.length, streams[1]!.closed], [2, false]);
    });

    it('does not interrupt a stream that is being opened', async () => {
      listener.setAwaited(new Set(['a']));
      await flushEventLoop();
      await open(0);
      assert.deepEqual([streams.length, listener.awaitedInStream.size], [1, 0]);
      listener.setAwaited(new Set(['a']));
      await flushEventLoop();
      assert.deepEqual([streams.length, [...request(1).awaited]], [2, ['a']]);
    });

    it('tries again no earlier on a server without change streams', async () => {
      await streams[0]!.feed(Object.assign(new Error('only on replica sets'), { code: 40_573 }));
      listener.setAwaited(new Set(['a']));
      clock.advance(HOUR - 1);
      await flushEventLoop();
      assert.equal(streams.length, 1);
    });

    describe('in a process without a worker', () => {
      beforeEach(async () => {
        await listener.stop();
        streams = [];
      });

      it('has a stream for them alone, until there are none', async () => {
        listener.setAwaited(new Set(['a']));
        await flushEventLoop();
        await open();
        assert.deepEqual([streams.length, request(0).work, [...request(0).awaited]], [1, undefined, ['a']]);
        assert.equal(listener.intervalMultiplier, 1, 'the stream does not report work');
        listener.setAwaited(new Set());
        await flushEventLoop();
        assert.deepEqual([streams[0]!.closed, clock.sleepers], [true, 0]);
      });

      it('makes do without a stream if its user may not open one, and tries again after an hour', async () => {
        const reports = recordEvents(events, 'worker:error');
        listener.setAwaited(new Set(['a']));
        await flushEventLoop();
        await streams[0]!.feed(Object.assign(new Error('not authorized'), { code: 13 }));
        clock.advance(HOUR - 1);
        await flushEventLoop();
        assert.deepEqual([reports, streams.length], [[], 1]);
        clock.advance(1);
        await flushEventLoop();
        assert.equal(streams.length, 2);
      });

      it('includes work in the stream when a worker starts', async () => {
        listener.setAwaited(new Set(['a']));
        await flushEventLoop();
        await open();
        listener.start();
        await flushEventLoop();
        await open();
        assert.deepEqual([request(1).work?.taskTypes, [...request(1).awaited]], [['work'], ['a']]);
        assert.equal(listener.intervalMultiplier, 6);
      });
    });
  });

  describe('while the worker is saturated', () => {
    beforeEach(async () => {
      await open();
      await streams[0]!.feed(batch);
      listener.rest();
      await flushEventLoop();
    });

    it('has no stream, and polls find changes within a second [C1]', async () => {
      assert.deepEqual(
        [received.length, streams[0]!.closed],
        [1, true],
        'changes that were read are delivered',
      );
      assert.equal(missed, 2, 'subscribers re-read');
      assert.equal(listener.intervalMultiplier * 5000, 1000);
      for (let i = 0; i < 3; i++) {
        clock.advance(500);
        await flushEventLoop();
      }
      assert.deepEqual([streams.length, missed], [1, 2]);
    });

    it('listens again as soon as there is room, and all subscribers re-read [C1]', async () => {
      listener.resume();
      await flushEventLoop();
      assert.equal(streams.length, 2);
      assert.equal(listener.intervalMultiplier, 1);
      await open();
      assert.deepEqual([missed, listener.intervalMultiplier], [3, 6]);
    });

    it('can be stopped [C12]', async () => {
      await listener.stop();
      assert.equal(clock.sleepers, 0);
    });
  });
});

import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { Begun } from '../../../src/store/begin.js';
import { StartMarks } from '../../../src/worker/start-marks.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

const STARTED = new Date('2026-01-01T00:00:00Z');

describe('StartMarks', () => {
  let clock: ManualClock;
  let events: EventBus;
  let marks: StartMarks;
  /** What reached the store, write by write. */
  let written: string[][];
  let mark: () => Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    written = [];
    mark = async () => undefined;
    const markBegun = (begun: readonly Begun[]): Promise<void> => {
      written.push(begun.map(({ jobId, token }) => `${jobId} ${token}`));
      return mark();
    };
    marks = new StartMarks(clock, events, { markBegun });
  });

  afterEach(async () => {
    marks.abandon();
    await marks.flushed();
    assert.equal(clock.sleepers, 0);
  });

  const start = (jobId: string, token = 'token'): void => marks.add({ jobId, token, startedAt: STARTED });

  it('marks jobs together, once they have run for a while', async () => {
    start('a');
    start('b', 'another token');
    await turns();
    assert.deepEqual(written, []);
    clock.advance(25);
    await marks.flushed();
    assert.deepEqual(written, [['a token', 'b another token']]);
  });

  it('leaves out those that come to an outcome before', async () => {
    start('a');
    start('b');
    start('c', 'another token');
    marks.drop('a');
    marks.drop('c');
    clock.advance(25);
    await marks.flushed();
    assert.deepEqual(written, [['b token']]);
  });

  it('marks each of them once', async () => {
    start('a');
    clock.advance(25);
    await marks.flushed();
    start('b');
    clock.advance(25);
    await marks.flushed();
    assert.deepEqual(written, [['a token'], ['b token']]);
  });

  it('marks nothing any more once it was abandoned', async () => {
    start('a');
    marks.abandon();
    await marks.flushed();
    assert.deepEqual([written, clock.sleepers], [[], 0]);
  });

  it('reports what it cannot mark, and leaves it', async () => {
    const trouble = recordEvents(events, 'worker:trouble');
    mark = () => Promise.reject(new Error('the reply is lost'));
    start('a');
    clock.advance(25);
    await marks.flushed();
    assert.deepEqual([written, trouble.length], [[['a token']], 1]);
  });
});

import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { StartedJob } from '../../../src/store/jobs/running.js';
import { StartedMarker } from '../../../src/worker/started-marker.js';
import { recordEvents } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const STARTED = new Date('2026-01-01T00:00:00Z');

describe('StartedMarker', () => {
  let clock: ManualClock;
  let events: EventBus;
  let marker: StartedMarker;
  /** The jobs of each write to the store. */
  let written: string[][];
  let mark: () => Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    written = [];
    mark = async () => undefined;
    const markStarted = (started: readonly StartedJob[]): Promise<void> => {
      written.push(started.map(({ jobId, token }) => `${jobId} ${token}`));
      return mark();
    };
    marker = new StartedMarker(clock, events, { markStarted });
  });

  afterEach(async () => {
    await marker.close();
    assert.equal(clock.sleepers, 0);
  });

  const start = (jobId: string, token = 'token'): void => marker.add({ jobId, token, startedAt: STARTED });

  it('marks jobs together after they have run for a while', async () => {
    start('a');
    start('b', 'another token');
    await flushEventLoop();
    assert.deepEqual(written, []);
    clock.advance(25);
    await marker.whenFlushed();
    assert.deepEqual(written, [['a token', 'b another token']]);
  });

  it('leaves out jobs that end before that', async () => {
    start('a');
    start('b');
    start('c', 'another token');
    marker.drop('a');
    marker.drop('c');
    clock.advance(25);
    await marker.whenFlushed();
    assert.deepEqual(written, [['b token']]);
  });

  it('marks each job once', async () => {
    start('a');
    clock.advance(25);
    await marker.whenFlushed();
    start('b');
    clock.advance(25);
    await marker.whenFlushed();
    assert.deepEqual(written, [['a token'], ['b token']]);
  });

  it('marks nothing when it is closed before that', async () => {
    start('a');
    await marker.close();
    assert.deepEqual([written, clock.sleepers], [[], 0]);
  });

  it('ignores jobs that are added after close()', async () => {
    await marker.close();
    start('a');
    await flushEventLoop();
    assert.deepEqual([written, clock.sleepers], [[], 0]);
  });

  it('retries a mark that failed, without the jobs that ended meanwhile', async () => {
    const reports = recordEvents(events, 'worker:error', 'worker:recovered');
    mark = () => Promise.reject(new Error('the reply is lost'));
    start('a');
    start('b');
    clock.advance(25);
    await flushEventLoop();
    marker.drop('a');
    clock.advance(250);
    await flushEventLoop();
    mark = async () => undefined;
    clock.advance(500);
    await marker.whenFlushed();
    assert.deepEqual(written, [['a token', 'b token'], ['b token'], ['b token']]);
    assert.deepEqual(
      reports.map(({ name, event }) => [name, (event as { failures: number }).failures]),
      [
        ['worker:error', 1],
        ['worker:error', 2],
        ['worker:recovered', 2],
      ],
    );
  });

  it('marks a job that started again while its earlier start was being marked', async () => {
    let finish: () => void = () => undefined;
    mark = () => new Promise((resolve) => (finish = resolve));
    start('a', 'first');
    clock.advance(25);
    await flushEventLoop();
    marker.drop('a');
    start('a', 'second');
    finish();
    await flushEventLoop();
    mark = async () => undefined;
    clock.advance(25);
    await marker.whenFlushed();
    assert.deepEqual(written, [['a first'], ['a second']]);
  });
});

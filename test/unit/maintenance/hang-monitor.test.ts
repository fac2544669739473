import assert from 'node:assert/strict';
import { HangMonitor } from '../../../src/maintenance/hang-monitor.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { OverdueQueue } from '../../../src/store/jobs/hanging.js';
import type { RunningType } from '../../../src/worker/in-flight-jobs.js';
import { recordEvents } from '../../support/events.js';
import { aRegistry } from '../../support/factories/handler-registry.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';

const MINUTE = 60_000;

describe('HangMonitor', () => {
  let clock: ManualClock;
  let events: EventBus;
  let monitor: HangMonitor;
  let emitted: { name: string; event: unknown }[];
  let runningTypes: Map<string, RunningType>;
  let isDraining: boolean;
  /** Of the execution log. */
  let usualDurations: Map<string, number>;
  let logReads: number;
  let overdue: OverdueQueue[];
  let idleQueues: string[];

  beforeEach(async () => {
    clock = new ManualClock();
    events = new EventBus('worker');
    emitted = recordEvents(events, 'type:hanging', 'type:recovered', 'queue:hanging', 'queue:recovered');
    runningTypes = new Map();
    usualDurations = new Map();
    [overdue, idleQueues] = [[], []];
    [isDraining, logReads] = [false, 0];
    const registry = aRegistry({ timeout: '1h' });
    for (const taskType of ['send', 'report']) registry.register(taskType, () => undefined);
    monitor = new HangMonitor({
      ...{ clock, events, registry, options: { queues: ['mail', 'other'] } },
      store: {
        findUsualDurations: async () => (logReads++, usualDurations),
        findOverdueQueues: async () => overdue,
        findIdleQueues: async (queues) => idleQueues.filter((queue) => queues.includes(queue)),
      },
      engine: {
        get runningTypes() {
          return runningTypes;
        },
        get isDraining() {
          return isDraining;
        },
      },
    });
    monitor.start();
    await flushEventLoop();
  });

  afterEach(() => monitor.stop());

  /** Time passes, then the monitor looks. Returns what it emitted. */
  async function lookAfter(ms: number): Promise<{ name: string; event: unknown }[]> {
    clock.advance(ms);
    monitor.wake();
    await flushEventLoop();
    return emitted.splice(0);
  }

  const run = (taskType: string, running = 1): void => {
    runningTypes.set(taskType, { running, oldestStart: clock.monotonic() });
  };
  const attempt = { jobId: 'a', queue: 'mail', attempt: 1, fence: 1 };
  const complete = (taskType: string, duration: number): void =>
    events.emit('job:complete', { ...attempt, taskType, duration, result: null });

  describe('task types', () => {
    it('hang when nothing has ended for 20 times the usual duration, and are reported once [B13]', async () => {
      complete('send', 10_000);
      run('send', 2);
      assert.deepEqual(await lookAfter(200_000 - 1), []);
      const hanging = { taskType: 'send', running: 2, since: START, usualDuration: 10_000 };
      assert.deepEqual(await lookAfter(1), [{ name: 'type:hanging', event: hanging }]);
      assert.deepEqual(await lookAfter(10 * MINUTE), []);
      assert.equal(logReads, 0);
    });

    it('do not hang within a minute, however short they usually are [B13]', async () => {
      complete('send', 1);
      run('send');
      assert.deepEqual(await lookAfter(MINUTE - 1), []);
      assert.equal((await lookAfter(1)).length, 1);
    });

    it('do not hang while others of the type end, with whatever outcome [B13]', async () => {
      complete('send', 100);
      run('send');
      const ends: (() => void)[] = [
        () => complete('send', 100),
        () => events.emit('job:cancelled', { ...attempt, taskType: 'send', reason: null }),
        () => events.emit('job:released', { ...attempt, taskType: 'send' }),
        () => events.emit('job:snoozed', { ...attempt, taskType: 'send', until: START }),
        () => events.emit('job:skipped', { ...attempt, taskType: 'send', reason: 'off' }),
        () => {
          const failure = { error: new Error('no'), willRetry: true, nextRunAt: START, duration: 5 };
          events.emit('job:failed', { ...attempt, taskType: 'send', ...failure });
        },
      ];
      for (const end of ends) {
        assert.deepEqual(await lookAfter(MINUTE - 1), []);
        end();
      }
      complete('report', 100);
      assert.equal((await lookAfter(MINUTE)).length, 1, 'the end of another type does not count');
    });

    it('recover when a handler ends, and may hang again [B13]', async () => {
      complete('send', 100);
      run('send');
      await lookAfter(2 * MINUTE);
      clock.advance(MINUTE);
      complete('send', 3 * MINUTE);
      const recovered = { taskType: 'send', hungFor: 3 * MINUTE };
      assert.deepEqual(await lookAfter(0), [{ name: 'type:recovered', event: recovered }]);
      // One long attempt among short ones moves the average: 18.09 s.
      run('send');
      assert.deepEqual(await lookAfter(6 * MINUTE), []);
      assert.deepEqual(
        (await lookAfter(MINUTE)).map(({ name }) => name),
        ['type:hanging'],
      );
    });

    it('recover when none of them is running any more [B13]', async () => {
      complete('send', 100);
      run('send');
      await lookAfter(2 * MINUTE);
      runningTypes.clear();
      assert.deepEqual(
        (await lookAfter(MINUTE)).map(({ name }) => name),
        ['type:recovered'],
      );
    });

    it('of which this process has completed nothing are compared with the log, which is read once [B13]', async () => {
      usualDurations.set('report', 5 * MINUTE);
      run('report');
      assert.deepEqual(await lookAfter(100 * MINUTE - 1), []);
      assert.equal((await lookAfter(1)).length, 1);
      assert.equal(logReads, 1);
    });

    it('that have never completed hang after half of their timeout [B13]', async () => {
      run('report');
      assert.deepEqual(await lookAfter(30 * MINUTE - 1), []);
      const hanging = { taskType: 'report', running: 1, since: START, usualDuration: null };
      assert.deepEqual(await lookAfter(1), [{ name: 'type:hanging', event: hanging }]);
      assert.equal(logReads, 1);
    });
  });

  describe('queues', () => {
    it('hang when a job is overdue and nothing ends, in two rounds in a row; reported once [B13]', async () => {
      overdue = [{ queue: 'mail', dueAt: START }];
      idleQueues = ['mail'];
      assert.deepEqual(await lookAfter(0), []);
      idleQueues = [];
      assert.deepEqual(await lookAfter(0), []);
      idleQueues = ['mail'];
      assert.deepEqual(await lookAfter(0), []);
      const hanging = { queue: 'mail', dueAt: START };
      assert.deepEqual(await lookAfter(0), [{ name: 'queue:hanging', event: hanging }]);
      assert.deepEqual(await lookAfter(0), []);
      idleQueues = [];
      const recovered = { queue: 'mail', hungFor: 6 * MINUTE };
      assert.deepEqual(await lookAfter(MINUTE), [{ name: 'queue:recovered', event: recovered }]);
    });

    it('do not hang while this worker is draining, and recover when nothing is due any more [B13]', async () => {
      overdue = [{ queue: 'mail', dueAt: START }];
      [idleQueues, isDraining] = [['mail'], true];
      assert.deepEqual([await lookAfter(0), await lookAfter(0)], [[], []]);
      isDraining = false;
      assert.deepEqual([await lookAfter(0), (await lookAfter(0)).length], [[], 1]);
      overdue = [];
      assert.deepEqual(
        (await lookAfter(0)).map(({ name }) => name),
        ['queue:recovered'],
      );
    });
  });

  it('forgets when jobs of unknown types ended, of which a sweep may end many [B13]', async () => {
    const gone = { error: new Error('crashed'), willRetry: false, nextRunAt: null, duration: 5 };
    clock.advance(10 * MINUTE);
    events.emit('job:failed', { ...attempt, taskType: 'unknown', ...gone });
    await lookAfter(0);
    runningTypes.set('unknown', { running: 1, oldestStart: 0 });
    assert.equal((await lookAfter(20 * MINUTE)).length, 1, 'counted from the start');
  });
});

import assert from 'node:assert/strict';
import type { EventName, SchedulerEvents } from '../../../src/domain/events.js';
import type { Logger } from '../../../src/domain/logger.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { attachLogger } from '../../../src/runtime/logger.js';

const job = { jobId: 'a', taskType: 'emails' };
const attempt = { ...job, queue: 'default', attempt: 2, fence: 3 };
const error = new Error('boom');
const at = new Date('2026-01-01T00:00:00Z');

/** One event of each name. */
const EVENTS: { [E in EventName]: SchedulerEvents[E] } = {
  'job:start': { ...attempt, waited: 1 },
  'job:complete': { ...attempt, result: { secret: 'hunter2' }, duration: 12.34 },
  'job:failed': { ...attempt, error, willRetry: true, nextRunAt: at, duration: 5 },
  'job:cancelled': { ...job, reason: 'not needed' },
  'job:skipped': { ...attempt, reason: 'when(isOpen) is false' },
  'job:expired': { ...job, queue: 'mail', expiresAt: at },
  'job:snoozed': { ...attempt, until: at },
  'job:released': attempt,
  'job:stalled': { ...job, lockedBy: 'other', crashes: 1, status: 'SCHEDULED', nextRunAt: at },
  'job:lockLost': attempt,
  'job:progress': { ...job, value: 50, note: 'half' },
  'job:hookFailed': { ...attempt, hook: 'after', error },
  'schedule:due': { scheduleId: 'nightly', jobId: 'nightly@2026', scheduledFor: at, late: 3 },
  'schedule:skipped': {
    scheduleId: 'nightly',
    from: at,
    until: at,
    count: 1,
    reason: 'overlap',
    runningFor: 12_000,
  },
  'schedule:disabled': { scheduleId: 'nightly', reason: 'no cron' },
  'job:invalid': { jobId: 'j', taskType: 'work', queue: 'default', reason: 'fence is missing', count: 1 },
  'schedule:invalid': { scheduleId: 'nightly', reason: 'rule is missing', count: 1 },
  'schedule:orphaned': { scheduleId: 'nightly' },
  'schedule:unserved': { scheduleId: 'nightly', queue: 'reports' },
  'type:hanging': { taskType: 'emails', running: 2, since: at, usualDuration: 1500 },
  'type:recovered': { taskType: 'emails', hungFor: 90_000 },
  'queue:hanging': { queue: 'reports', dueAt: at },
  'queue:recovered': { queue: 'reports', hungFor: 400_000 },
  'daemon:overrun': { tick: 7, late: 2000, inARow: 2 },
  'job:stuck': { ...attempt, runningFor: 5 },
  'worker:state': { state: 'Running', previous: 'Starting' },
  'worker:drain': { state: 'drained' },
  'worker:error': { operation: 'settle', error, failures: 3, retryIn: 250 },
  'worker:recovered': { operation: 'settle', failures: 2 },
  'listener:error': { event: 'job:start', error },
};

const LINES: Record<EventName, string> = {
  'job:start': 'debug: emails started',
  'job:complete': 'info: emails completed in 12 ms',
  'job:failed': 'warn: emails failed (attempt 2), next attempt at 2026-01-01T00:00:00.000Z',
  'job:cancelled': 'info: emails cancelled: not needed',
  'job:skipped': 'info: emails skipped: when(isOpen) is false',
  'job:expired': 'warn: emails expired at 2026-01-01T00:00:00.000Z without having started',
  'job:snoozed': 'info: emails snoozed until 2026-01-01T00:00:00.000Z',
  'job:released': 'info: emails released unfinished',
  'job:stalled': 'warn: emails recovered: the lock of other expired; it is now SCHEDULED',
  'job:lockLost': 'warn: emails lost its lock, its outcome was dropped',
  'job:progress': 'debug: emails progress: 50 (half)',
  'job:hookFailed': 'error: emails: the hook after failed',
  'schedule:due': 'debug: nightly is due',
  'schedule:skipped':
    'warn: nightly: skipped the run of 2026-01-01T00:00:00.000Z, the previous one is still running (12 s)',
  'schedule:disabled': 'error: the schedule nightly is disabled: no cron',
  'job:invalid': 'error: the stored job j is malformed and was ended as FAILED: fence is missing',
  'schedule:invalid': 'error: the schedule nightly is malformed and was disabled: rule is missing',
  'schedule:orphaned':
    'warn: no worker defines the schedule nightly any more; remove it with: chronos schedules remove nightly',
  'schedule:unserved':
    'warn: no live worker both serves the queue reports and has the handler of the schedule nightly: its runs wait; start one that does',
  'type:hanging':
    'warn: jobs of emails hang: 2 running, none has ended since 2026-01-01T00:00:00.000Z, usually one takes 2 s; find out what its handlers wait for, and list the jobs with: chronos jobs list --state running --type emails',
  'type:recovered': 'info: jobs of emails end again, after they hung for 90 s',
  'queue:hanging':
    'warn: the queue reports hangs: a job has been due since 2026-01-01T00:00:00.000Z and none was finished for five minutes; find out why with: chronos doctor',
  'queue:recovered': 'info: jobs of the queue reports are finished again, after it hung for 400 s',
  'daemon:overrun': 'warn: tick 7 ended 2 s late (2nd in a row)',
  'job:stuck': 'error: emails ignores its abort signal and keeps its slot',
  'worker:state': 'info: worker running',
  'worker:drain': 'info: worker drained, nothing is running any more',
  'worker:error': 'warn: settle failed (3rd time), retrying in 250 ms',
  'worker:recovered': 'info: settle succeeded after 2 failures',
  'listener:error': 'error: a listener of job:start threw an error',
};

describe('attachLogger', () => {
  let bus: EventBus;
  let lines: { fields: object; line: string }[];

  beforeEach(() => {
    bus = new EventBus('worker');
    lines = [];
    const write = (level: string) => (fields: object, message: string) =>
      void lines.push({ fields, line: `${level}: ${message}` });
    const log: Logger = {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
    };
    attachLogger(bus, log);
  });

  for (const name of Object.keys(EVENTS) as EventName[]) {
    it(`writes one line for ${name}`, () => {
      bus.emit(name, EVENTS[name]);
      assert.deepEqual(
        lines.map(({ line }) => line),
        [LINES[name]],
      );
    });
  }

  it('writes the fields of the event, errors as `err`', () => {
    bus.emit('job:failed', EVENTS['job:failed']);
    assert.deepEqual(lines[0]?.fields, {
      ...attempt,
      err: error,
      willRetry: true,
      nextRunAt: at,
      duration: 5,
    });
  });

  it('writes no result: it may contain private data', () => {
    bus.emit('job:complete', EVENTS['job:complete']);
    assert.ok(!JSON.stringify(lines).includes('hunter2'));
  });

  it('writes an error when a job failed for good, and when the worker failed', () => {
    bus.emit('job:failed', { ...EVENTS['job:failed'], willRetry: false, nextRunAt: null });
    bus.emit('worker:state', { state: 'Error', previous: 'Starting', error });
    assert.deepEqual(
      lines.map(({ line }) => line),
      ['error: emails failed for good (attempt 2)', 'error: worker error'],
    );
  });

  it('describes several skipped runs, and skips for other reasons than overlap', () => {
    const skipped = { ...EVENTS['schedule:skipped'], reason: 'misfire' as const, runningFor: null };
    bus.emit('schedule:skipped', { ...skipped, count: 3 });
    bus.emit('schedule:skipped', { ...skipped, count: null });
    assert.deepEqual(
      lines.map(({ line }) => line),
      [
        'warn: nightly: skipped 3 runs from 2026-01-01T00:00:00.000Z on (misfire)',
        'warn: nightly: skipped many runs from 2026-01-01T00:00:00.000Z on (misfire)',
      ],
    );
  });

  it('counts failures from the second on, and mentions a retry only if there is one', () => {
    for (const failures of [1, 2, 11, 21]) bus.emit('worker:error', { ...EVENTS['worker:error'], failures });
    bus.emit('worker:error', { ...EVENTS['worker:error'], failures: 1, retryIn: 0 });
    assert.deepEqual(
      lines.map(({ line }) => line),
      [
        'warn: settle failed, retrying in 250 ms',
        'warn: settle failed (2nd time), retrying in 250 ms',
        'warn: settle failed (11th time), retrying in 250 ms',
        'warn: settle failed (21st time), retrying in 250 ms',
        'warn: settle failed',
      ],
    );
  });

  it('replaces missing values with a text or leaves them out', () => {
    bus.emit('job:cancelled', { ...job, reason: null });
    bus.emit('job:progress', { ...job, value: 1, note: null });
    bus.emit('job:stalled', { ...EVENTS['job:stalled'], lockedBy: null });
    assert.deepEqual(
      lines.map(({ line }) => line),
      [
        'info: emails cancelled: no reason given',
        'debug: emails progress: 1',
        'warn: emails recovered: the lock of its worker expired; it is now SCHEDULED',
      ],
    );
  });

  it('writes nothing if logging is off', () => {
    const silent = new EventBus('worker');
    attachLogger(silent, false);
    const written = withConsole(() => silent.emit('worker:state', { ...EVENTS['worker:state'], error }));
    assert.deepEqual(written, []);
  });
});

/** What `action` writes with `console.warn` and `console.error`. */
function withConsole(action: () => void): { level: string; text: string }[] {
  const written: { level: string; text: string }[] = [];
  const original = { ...console };
  for (const level of ['debug', 'info', 'log', 'warn', 'error'] as const)
    console[level] = (...args: unknown[]) => void written.push({ level, text: args.join(' ') });
  try {
    action();
    return written;
  } finally {
    Object.assign(console, original);
  }
}

describe('the console as logger', () => {
  for (const [title, logger] of [
    ['by default', undefined],
    ['if it is passed', console],
  ] as const) {
    it(`gets readable lines of level warn and above ${title}`, () => {
      const bus = new EventBus('worker');
      attachLogger(bus, logger);
      const written = withConsole(() => {
        for (const name of Object.keys(EVENTS) as EventName[]) bus.emit(name, EVENTS[name]);
      });
      const expected = Object.values(LINES).filter((line) => /^(warn|error):/.test(line));
      assert.equal(written.length, expected.length);
      for (const { level, text } of written) {
        const [line = ''] = text.split('\n');
        const match = expected.find((one) => line.startsWith(`chronos: ${one.slice(one.indexOf(' ') + 1)}`));
        assert.ok(match?.startsWith(level), `${level} ${line}`);
      }
    });
  }

  it('gets one line for an attempt that is retried, with the error and the id of the job', () => {
    const bus = new EventBus('worker');
    attachLogger(bus, undefined);
    const failed = {
      ...EVENTS['job:failed'],
      error: new Error('no route to mongodb://ada:secret@host\n\u001b[2J'),
    };
    assert.deepEqual(
      withConsole(() => bus.emit('job:failed', failed)),
      [
        {
          level: 'warn',
          text: 'chronos: emails failed (attempt 2), next attempt at 2026-01-01T00:00:00.000Z: no route to mongodb://***@host\\n\\x1b[2J  [a]',
        },
      ],
    );
  });

  it('gets the stack of an error only if the job failed for good', () => {
    const bus = new EventBus('worker');
    attachLogger(bus, undefined);
    const [written] = withConsole(() =>
      bus.emit('job:failed', { ...EVENTS['job:failed'], willRetry: false, nextRunAt: null }),
    );
    const [line, ...frames] = written?.text.split('\n') ?? [];
    assert.equal(line, 'chronos: emails failed for good (attempt 2): boom  [a]');
    assert.match(frames[0] ?? '', /^ {4}at .*logger\.test\.ts/);
  });

  it('has no listeners of events that are not shown, so that they cost nothing', () => {
    const names: string[] = [];
    attachLogger({ on: (name) => names.push(name) }, undefined);
    assert.ok(!names.includes('job:start') && !names.includes('job:complete'), names.join());
    assert.ok(names.includes('job:failed'));
  });
});

describe('a logger that fails', () => {
  const fails = (how: () => unknown): Logger => {
    const write = how;
    return { debug: write, info: write, warn: write, error: write };
  };
  const THROWS = (): never => {
    throw new Error('disk full');
  };

  it('is reported once, and affects neither the worker nor other listeners', () => {
    const bus = new EventBus('worker');
    attachLogger(bus, fails(THROWS));
    const [started, errors]: [unknown[], unknown[]] = [[], []];
    bus.on('job:start', (event) => started.push(event));
    bus.on('listener:error', (event) => errors.push(event));
    const written = withConsole(() => {
      for (let index = 0; index < 3; index++) bus.emit('job:start', EVENTS['job:start']);
    });
    assert.deepEqual([started.length, errors], [3, []]);
    assert.equal(written.length, 1);
    assert.match(written[0]?.text ?? '', /^chronos: the logger threw an error.*: disk full/);
  });

  it('may be asynchronous: a rejection is not unhandled', async () => {
    const bus = new EventBus('worker');
    attachLogger(
      bus,
      fails(() => Promise.reject(new Error('disk full'))),
    );
    const { error: original } = console;
    const text = await new Promise<string>((resolve) => {
      console.error = resolve;
      bus.emit('job:start', EVENTS['job:start']);
    });
    console.error = original;
    assert.match(text, /disk full/);
  });
});

import assert from 'node:assert/strict';
import { ChronosError } from '../../../src/domain/errors.js';
import { DEFAULT_PRIORITY, DEFAULT_QUEUE, resolveOptions } from '../../../src/config/options.js';
import { ManualClock } from '../../support/manual-clock.js';

const uri = 'mongodb://root:hunter2@db:27017/app';

function problemsOf(options: unknown): string[] {
  try {
    resolveOptions(options);
  } catch (error) {
    assert.ok(error instanceof ChronosError);
    assert.equal(error.code, 'INVALID_OPTIONS');
    assert.ok(!error.message.includes('hunter2'), 'credentials never appear in a message');
    return error.message.split('\n').filter((line) => !/^\d+ problems:$/.test(line));
  }
  return [];
}

describe('resolveOptions', () => {
  it('has the documented defaults', () => {
    const { uri: _, ...defaults } = resolveOptions({ uri });
    const DAY = 86_400_000;
    assert.deepEqual(defaults, {
      client: undefined,
      connection: undefined,
      database: undefined,
      prefix: 'chronos_',
      environment: process.env['NODE_ENV'] ?? 'development',
      symbols: {},
      shellFiles: [],
      shellInheritEnv: [],
      shellPayloadEnv: [],
      urlHosts: [],
      queues: ['default'],
      queueSettings: {},
      concurrency: 5,
      pollInterval: 5000,
      lockTimeout: 60_000,
      sweepInterval: 30_000,
      heartbeatInterval: 10_000,
      shutdownGrace: 30_000,
      timeout: 3_600_000,
      timeoutGrace: 5000,
      retries: { max: 3, base: 1000, cap: 60_000, jitter: 'full' },
      maxCrashes: 3,
      maxPayloadBytes: 262_144,
      retention: { completed: DAY, failed: 30 * DAY, cancelled: DAY },
      pruneInterval: 600_000,
      connectTimeout: 60_000,
      timezone: 'UTC',
      workerId: undefined,
      taskHandlers: {},
      logger: undefined,
      clock: undefined,
    });
    assert.deepEqual([DEFAULT_QUEUE, DEFAULT_PRIORITY], ['default', 100]);
  });

  it('reads durations as milliseconds or with a unit', () => {
    const { pollInterval, timeout } = resolveOptions({ uri, pollInterval: 3000, timeout: '2m' });
    assert.deepEqual([pollInterval, timeout], [3000, 120_000]);
  });

  it('accepts settings only for queues that it serves', () => {
    const queues = ['mail', 'default'];
    const { queueSettings } = resolveOptions({
      uri,
      queues,
      queueSettings: { mail: { slots: 2 }, default: {} },
    });
    assert.deepEqual(queueSettings, { mail: { slots: 2 }, default: {} });
    assert.deepEqual(problemsOf({ uri, queues, queueSettings: { mial: { slots: 2 } } }), [
      "options.queueSettings.mial: this process does not serve the queue 'mial' (did you mean 'mail'?): add it to options.queues, or remove its settings",
    ]);
    assert.match(
      problemsOf({ uri, queues, queueSettings: { mail: { slots: 0, slot: 1 } } }).join(),
      /queueSettings\.mail\.slots must be a whole number from 1 .*queueSettings\.mail\.slot is not an option/,
    );
    assert.match(
      problemsOf({ uri, queueSettings: [] }).join(),
      /queueSettings must be an object, got an empty list/,
    );
  });

  it('accepts a logger with four methods, or false', () => {
    const write = (): void => undefined;
    const logger = { debug: write, info: write, warn: write, error: write };
    assert.equal(resolveOptions({ uri, logger }).logger, logger);
    assert.equal(resolveOptions({ uri, logger: false }).logger, false);
    for (const wrong of [true, null, { info: write }, write])
      assert.match(
        problemsOf({ uri, logger: wrong }).join(),
        /options\.logger must be false, or a logger with debug/,
      );
  });

  it('keeps 0 where 0 has a meaning', () => {
    const options = {
      uri,
      shutdownGrace: 0,
      timeoutGrace: 0,
      retries: { base: 0 },
      retention: { failed: 0 },
    };
    const { shutdownGrace, timeoutGrace, retries, retention } = resolveOptions(options);
    assert.deepEqual([shutdownGrace, timeoutGrace, retries.base, retention.failed], [0, 0, 0, 0]);
  });

  it('treats undefined as missing', () => {
    assert.equal(resolveOptions({ uri, concurrency: undefined }).concurrency, 5);
  });

  it('fills nested options from the defaults', () => {
    const { retries, retention } = resolveOptions({ uri, retries: { max: 9 }, retention: { failed: '1d' } });
    assert.deepEqual(retries, { max: 9, base: 1000, cap: 60_000, jitter: 'full' });
    assert.deepEqual(retention, { completed: 86_400_000, failed: 86_400_000, cancelled: 86_400_000 });
  });

  it('is frozen and independent of its input', () => {
    const queues = ['a'];
    const options = resolveOptions({ uri, queues });
    queues.push('b');
    assert.deepEqual(options.queues, ['a']);
    for (const part of [options, options.retries, options.retention]) assert.ok(Object.isFrozen(part));
  });

  it('shortens intervals for a short lock unless they are set', () => {
    const short = resolveOptions({ uri, lockTimeout: '6s' });
    assert.deepEqual([short.sweepInterval, short.heartbeatInterval], [3000, 2000]);
    assert.equal(resolveOptions({ uri, lockTimeout: '6s', sweepInterval: '10s' }).sweepInterval, 10_000);
  });

  it('accepts a custom clock with all methods', () => {
    const clock = new ManualClock();
    assert.equal(resolveOptions({ uri, clock }).clock, clock);
    assert.equal(problemsOf({ uri, clock: { now: () => 0 } }).length, 1);
  });

  it('reports all problems in one error', () => {
    const problems = problemsOf({
      concurrency: 0,
      polInterval: 5000,
      queues: [],
      retries: { max: 0, jitter: 'some', bas: 1 },
      timezone: 'Mars/Olympus',
      clock: {},
    });
    assert.deepEqual(problems, [
      '  - options.concurrency must be a whole number from 1 to 10000, got 0',
      "  - options.polInterval is not an option (did you mean 'pollInterval'?)",
      '  - options.queues must be a list with at least one entry, got an empty list',
      '  - options.retries.max must be a whole number from 1 to 1000, got 0',
      "  - options.retries.jitter must be one of full, none, got 'some' (did you mean 'none'?)",
      "  - options.retries.bas is not an option (did you mean 'base'?)",
      "  - options.timezone must be a time zone like 'Europe/Berlin' or 'UTC', got 'Mars/Olympus'",
      '  - options.clock must be an object with now(), monotonic() and sleep(), got an object',
      '  - options.uri is missing: set it to the connection string of MongoDB, or set options.client or options.connection',
    ]);
  });

  it('suggests the option with a similar name', () => {
    assert.match(problemsOf({ uri, lockTimeOut: 1 }).join(), /did you mean 'lockTimeout'\?/);
    assert.match(problemsOf({ uri, workerid: 'a' }).join(), /did you mean 'workerId'\?/);
    assert.deepEqual(problemsOf({ uri, colour: 'red' }), ['options.colour is not an option']);
    assert.deepEqual(problemsOf({ uri, constructor: 1 }).length, 1);
  });

  it('reports contradictions', () => {
    assert.deepEqual(problemsOf({ uri, lockTimeout: '5s', heartbeatInterval: '5s' }), [
      'options.lockTimeout (5000 ms) must be longer than options.heartbeatInterval (5000 ms)',
    ]);
    assert.deepEqual(problemsOf({ uri, retries: { base: '10s', cap: '1s' } }), [
      'options.retries.cap (1000 ms) must not be shorter than options.retries.base (10000 ms)',
    ]);
  });

  it('rejects a heartbeat interval with which a running worker would count as gone', () => {
    assert.deepEqual(problemsOf({ uri, lockTimeout: '5m', heartbeatInterval: '21s' }), [
      "options.heartbeatInterval must be at most 20000 ms, got '21s': a worker without a heartbeat for a minute counts as gone",
    ]);
    assert.equal(problemsOf({ uri, heartbeatInterval: '20s' }).length, 0);
  });

  it('does not compare an invalid value with other options', () => {
    assert.equal(problemsOf({ uri, lockTimeout: 'long' }).length, 1);
    assert.equal(problemsOf({ uri, retries: { cap: 'high' } }).length, 1);
  });

  for (const [name, value] of [
    ['concurrency', 1.5],
    ['concurrency', '5'],
    ['concurrency', Infinity],
    ['pollInterval', 9],
    ['pollInterval', '2d'],
    ['lockTimeout', 499],
    ['timeout', 0],
    ['maxCrashes', 0],
    ['maxPayloadBytes', 16 * 1024 * 1024],
    ['retention', '7d'],
    ['retries', 3],
    ['queues', 'default'],
    ['queues', ['']],
    ['queues', [{ $ne: '' }]],
    ['workerId', { $ne: '' }],
    ['taskHandlers', []],
    ['shutdownGrace', -1],
    ['sweepInterval', Object.create(null)],
  ] as const) {
    it(`rejects ${name} ${JSON.stringify(value) ?? ''}`, () => {
      const problems = problemsOf({ uri, [name]: value as unknown });
      assert.equal(problems.length, 1);
      assert.ok(problems[0]?.startsWith(`options.${name}`), problems[0]);
    });
  }

  it('rejects input that is not an object', () => {
    for (const input of [undefined, null, 'mongodb://host', [], 7]) {
      assert.match(problemsOf(input)[0] ?? '', /options must be an object, got /);
    }
  });

  it('never shows an invalid uri', () => {
    for (const wrong of ['http://root:hunter2@host', 'root:hunter2@host', { password: 'hunter2' }, '']) {
      const problems = problemsOf({ uri: wrong });
      assert.deepEqual(problems, [
        'options.uri must be a connection string like mongodb://host:27017/app (its value is not shown)',
      ]);
    }
  });

  it('redacts credentials in invalid options', () => {
    const long = `mongodb://root:hunter2${'x'.repeat(100)}@host/db`;
    const options = {
      uri,
      concurrency: uri,
      workerId: `${uri}\0`,
      timeout: uri,
      queues: uri,
      timezone: long,
    };
    assert.equal(problemsOf(options).length, 5);
  });
});

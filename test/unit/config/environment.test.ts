import assert from 'node:assert/strict';
import { readEnvironment } from '../../../src/config/environment.js';
import { resolveOptions } from '../../../src/config/options.js';

const MONGODB_URI = 'mongodb://root:hunter2@db/app';

function messageOf(environment: Record<string, string>): string {
  try {
    readEnvironment({ MONGODB_URI, ...environment });
  } catch (error) {
    const { message, code } = error as { message: string; code: string };
    assert.equal(code, 'INVALID_ENVIRONMENT');
    assert.ok(!message.includes('hunter2'), 'credentials never appear in a message');
    return message;
  }
  return '';
}

describe('readEnvironment', () => {
  it('reads POLL_INTERVAL=3000 CONCURRENCY=10 [C13]', () => {
    const { options } = readEnvironment({ MONGODB_URI, POLL_INTERVAL: '3000', CONCURRENCY: '10' });
    assert.deepEqual(options, { uri: MONGODB_URI, pollInterval: 3000, concurrency: 10 });
  });

  it('reads every variable [C13]', () => {
    const settings = readEnvironment({
      MONGODB_URI,
      CONCURRENCY: '10',
      POLL_INTERVAL: '3s',
      LOCK_TIMEOUT: '90000',
      SHUTDOWN_GRACE: '10s',
      CONNECT_TIMEOUT: '5s',
      QUEUES: 'mails, reports ,,default',
      TIMEZONE: 'Europe/Berlin',
      WORKER_ID: 'worker-1',
      SHELL_FILES: '/bin/ls, /usr/bin/env',
      SHELL_INHERIT_ENV: 'BACKUP_DIR, no_proxy',
      SHELL_PAYLOAD_ENV: 'REPORT_DATE',
      URL_HOSTS: '10.0.0.0/8',
      TICK_INTERVAL: '30s',
      MAX_OVERRUNS: '5',
      HANDLERS: './handlers.js',
      LOG_LEVEL: 'debug',
      LOG_FORMAT: 'json',
      HTTP_PORT: '8080',
      HTTP_HOST: '0.0.0.0',
      HTTP_TOKEN: 'a-token-to-operate',
      HTTP_READ_TOKEN: 'a-token-to-read-with',
    });
    assert.deepEqual(settings, {
      options: {
        uri: MONGODB_URI,
        concurrency: 10,
        pollInterval: 3000,
        lockTimeout: 90_000,
        shutdownGrace: 10_000,
        connectTimeout: 5000,
        queues: ['mails', 'reports', 'default'],
        timezone: 'Europe/Berlin',
        workerId: 'worker-1',
        shellFiles: ['/bin/ls', '/usr/bin/env'],
        shellInheritEnv: ['BACKUP_DIR', 'no_proxy'],
        shellPayloadEnv: ['REPORT_DATE'],
        urlHosts: ['10.0.0.0/8'],
      },
      daemon: { interval: 30_000, maxOverruns: 5 },
      handlers: './handlers.js',
      logLevel: 'debug',
      logFormat: 'json',
      http: { port: 8080, host: '0.0.0.0', token: 'a-token-to-operate', readToken: 'a-token-to-read-with' },
    });
  });

  it('returns options that the Scheduler accepts', () => {
    for (const LOCK_TIMEOUT of ['60s', '5s', '500']) {
      const { options } = readEnvironment({ MONGODB_URI, LOCK_TIMEOUT });
      assert.doesNotThrow(() => resolveOptions(options));
    }
  });

  it('uses the defaults for missing and empty variables', () => {
    const names = [
      'CONCURRENCY',
      'POLL_INTERVAL',
      'LOCK_TIMEOUT',
      'QUEUES',
      'TIMEZONE',
      'WORKER_ID',
      'HANDLERS',
      'HTTP_PORT',
      'HTTP_HOST',
      'HTTP_TOKEN',
      'HTTP_TOKEN_FILE',
    ];
    const empty = Object.fromEntries([...names, 'LOG_LEVEL', 'LOG_FORMAT'].map((name) => [name, ' ']));
    const expected = {
      options: { uri: MONGODB_URI },
      daemon: {},
      handlers: undefined,
      logLevel: 'info',
      logFormat: undefined,
      http: undefined,
    };
    assert.deepEqual(readEnvironment({ MONGODB_URI }), expected);
    assert.deepEqual(readEnvironment({ MONGODB_URI, ...empty }), expected);
  });

  it('trims values', () => {
    const { options } = readEnvironment({ MONGODB_URI: ` ${MONGODB_URI}\n`, CONCURRENCY: '5 ' });
    assert.deepEqual(options, { uri: MONGODB_URI, concurrency: 5 });
  });

  it('reports all problems in one error', () => {
    const wrong = {
      CONCURRENCY: 'many',
      POLL_INTERVAL: '1',
      LOCK_TIMEOUT: '-1',
      QUEUES: ',',
      TIMEZONE: 'Berlin',
      LOG_LEVEL: 'loud',
      LOG_FORMAT: 'xml',
    };
    assert.equal(
      messageOf({ MONGODB_URI: 'root:hunter2@db', ...wrong }),
      [
        '8 problems:',
        "  - MONGODB_URI must be a connection string with the database's name, like mongodb://host:27017/app (its value is not shown)",
        "  - CONCURRENCY must be a whole number from 1 to 10000, got 'many'",
        '  - POLL_INTERVAL must be at least 10 ms, got 1',
        '  - LOCK_TIMEOUT must be between 0 and a hundred years, got -1',
        '  - QUEUES must be a list with at least one entry, got an empty list',
        "  - TIMEZONE must be a time zone like 'Europe/Berlin' or 'UTC', got 'Berlin'",
        "  - LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, got 'loud'",
        "  - LOG_FORMAT must be one of pretty, json, got 'xml'",
      ].join('\n'),
    );
  });

  it('explains how to get a MongoDB if MONGODB_URI is missing', () => {
    assert.throws(() => readEnvironment({}), {
      code: 'INVALID_ENVIRONMENT',
      message: /^MONGODB_URI is missing: .*npm start/,
    });
  });

  it('redacts credentials in invalid variables', () => {
    const long = MONGODB_URI.replace('hunter2', `hunter2${'x'.repeat(100)}`);
    assert.match(messageOf({ CONCURRENCY: MONGODB_URI, TIMEZONE: long, LOG_LEVEL: long }), /^3 problems/);
  });

  it('rejects values that are not decimal whole numbers', () => {
    for (const CONCURRENCY of ['1e1', '0x10', '10.5', 'Infinity', '١٠'])
      assert.match(messageOf({ CONCURRENCY }), /CONCURRENCY must be a whole number/);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { mongo } from 'mongoose';
import { ChronosError, Scheduler } from '../../../src/index.js';
import { Draft } from '../../../src/jobs/draft.js';
import { JobHandle } from '../../../src/jobs/job-handle.js';
import { Operations } from '../../../src/operations/operations.js';
import { ScheduleBuilder } from '../../../src/schedules/definition/builder.js';
import {
  type Argument,
  argumentsOf,
  fuzzParameters,
  holes,
  isLongFuzz,
  revokedProxy,
  throwingGetter,
} from '../../support/fuzz.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { rejectionOf } from '../../support/rejection.js';
import { useSharedDatabase } from '../../support/shared-database.js';

/** Longer than this, a call would block the heartbeat of the process, or it hangs. */
const MAX_CALL_MS = 5000;

/** These run until they are stopped. */
const NOT_CALLED = ['constructor', 'start', 'forever', 'daemon', 'drain'];
/** These change the handlers of a Scheduler: each call gets one of its own, which is never connected. */
const CONFIGURING = [
  'registerHandler',
  'registerCommand',
  'use',
  'useDispatch',
  'schedule',
  'define',
  'stop',
];

const OPTION_NAMES = [
  ...[
    'at',
    'delay',
    'queue',
    'priority',
    'key',
    'retries',
    'timeout',
    'maxRunningTime',
    'expiresIn',
    'userId',
  ],
  ...['tags', 'retention', 'hold', 'handler', 'taskType', 'payload', 'options', 'id', 'isActive', 'cron'],
  ...[
    'fields',
    'symbol',
    'every',
    'between',
    'except',
    'timezone',
    'startsAt',
    'endsAt',
    'misfire',
    'overlap',
  ],
  ...[
    'jitter',
    'maxRuns',
    'enabled',
    'environments',
    'state',
    'schedule',
    'tag',
    'idPrefix',
    'limit',
    'after',
  ],
  ...['reason', 'signal', 'onProgress', 'by', 'owner', 'batch', 'dryRun', 'wait', 'who', 'action', 'target'],
  ...['filter', 'counts', 'schema', 'policy', 'within', 'cap', 'max', 'base', 'uri', 'queues', 'logger'],
];

/** First arguments that many methods accept, so that the values of the other arguments matter. */
const VALID = fc.constantFrom<unknown>('work', 'known', undefined, {}).map((value): Argument => ({
  value: () => value,
  toString: () => fc.stringify(value),
}));

type Call = (...values: unknown[]) => unknown;

/** The public methods of an object, as functions. */
function methodsOf(prototype: object, without: readonly string[] = []): string[] {
  return Object.getOwnPropertyNames(prototype).filter((name) => {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
    return typeof method === 'function' && name !== 'constructor' && !without.includes(name);
  });
}

function callsOf(
  label: string,
  names: readonly string[],
  target: () => unknown,
  then: (returned: unknown) => unknown = (returned) => returned,
): [string, Call][] {
  return names.map((name) => [
    `${label}.${name}`,
    (...values) => then((target() as Record<string, Call>)[name]?.(...values)),
  ]);
}

describe('public methods with arbitrary values', function () {
  if (isLongFuzz) this.timeout(0);
  const database = useSharedDatabase();

  async function connected(): Promise<Scheduler> {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined);
    await scheduler.addSchedule({ id: 'known', taskType: 'work', cron: '0 * * * *' });
    return scheduler;
  }

  const unconnected = (): Scheduler => new Scheduler({ uri: database.uri, logger: false });

  function allCalls(scheduler: Scheduler): Map<string, Call> {
    const { operations } = scheduler;
    const withLock: Call = (name, _, options) =>
      scheduler.withLock(name as never, () => undefined, options as never);
    return new Map([
      ...callsOf(
        'scheduler',
        methodsOf(Scheduler.prototype, [...NOT_CALLED, ...CONFIGURING, 'withLock']),
        () => scheduler,
      ),
      ['scheduler.withLock', withLock],
      ['new Scheduler', (options) => new Scheduler(options as never)],
      ...callsOf('scheduler', CONFIGURING, unconnected),
      ...callsOf('operations', methodsOf(Operations.prototype), () => operations),
      ...callsOf('handle', methodsOf(JobHandle.prototype), () => scheduler.job('missing')),
      ...callsOf(
        'draft',
        methodsOf(Draft.prototype),
        () => scheduler.delay(1),
        (draft) => (draft instanceof Draft ? draft.dispatch('work') : draft),
      ),
      ...callsOf('builder', methodsOf(ScheduleBuilder.prototype, ['dispatch']), () =>
        unconnected().schedule('defined'),
      ),
    ]);
  }

  it('resolve, or fail with a code and a message, and none hangs', async () => {
    const scheduler = await connected();
    const calls = allCalls(scheduler);
    const values = argumentsOf(OPTION_NAMES);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...calls.keys()),
        fc.tuple(fc.oneof(values, VALID), values, values),
        async (name, given) => {
          const error = await errorOf(`${name}(${given.join(', ')})`, () =>
            calls.get(name)?.(...given.map(({ value }: Argument) => value())),
          );
          if (error === undefined) return;
          const isExpected =
            error instanceof ChronosError && error.code !== undefined && error.message !== '';
          assert.ok(isExpected, `${name}(${given.join(', ')}): ${(error as Error).stack}`);
        },
      ),
      fuzzParameters(2000),
    );
  });

  const fakeDate = Object.create(Date.prototype) as Date;
  const INVALID: [string, (scheduler: Scheduler) => Promise<unknown>, RegExp][] = [
    [
      'dispatchMany() with a list of holes',
      (s) => s.dispatchMany(Object.assign(holes(40_000_000), [{ taskType: 'work' }]) as never),
      /must not be a sparse array, but index 1 is empty/,
    ],
    ['dispatchMany(null)', (s) => s.dispatchMany(null as never), /iterable .*got null/],
    [
      'null as bulk options',
      (s) => s.operations.cancelJobs({}, null as never),
      /must be an object, got null/,
    ],
    [
      'null as options of emptyQueue',
      (s) => s.operations.emptyQueue('q', null as never),
      /must be an object, got null/,
    ],
    [
      'an unknown action',
      (s) => s.operations.countMatching({}, 'unknown' as never),
      /must be one of retry, .*got 'unknown'/,
    ],
    [
      'a date past the calendar',
      (s) => s.dispatch('work', null, { at: new Date(8.64e15) }),
      /years 1000 to 9999, got '\+275760/,
    ],
    [
      'a date before the calendar',
      (s) => s.backfill('known', new Date(-8.64e15), new Date()),
      /years 1000 to 9999, got '-271821/,
    ],
    [
      'a fake date',
      (s) => s.dispatch('work', null, { at: fakeDate }),
      /must be a Date or a text .*got an object/,
    ],
    [
      'a reason without toString',
      (s) => s.cancel('x', Object.create(null) as never),
      /must be a string, got object/,
    ],
    [
      'an id without toString',
      (s) => s.triggerSchedule(Object.create(null) as never),
      /must be a string, got object/,
    ],
    [
      'an event without toString',
      async (s) => s.on(Object.create(null) as never, () => 1),
      /an object is not an event/,
    ],
    [
      'a throwing getter in a filter',
      (s) => s.operations.listJobs(throwingGetter('queue')),
      /a getter or a proxy in it throws \(from a getter\)/,
    ],
    [
      'a throwing getter in options',
      (s) => s.dispatch('work', null, throwingGetter('queue')),
      /pass a plain value/,
    ],
    ['a revoked proxy as a schedule', (s) => s.addSchedule(revokedProxy({}) as never), /pass a plain value/],
    [
      'a long text as a query',
      (s) => s.operations.listDead('x'.repeat(1 << 20) as never),
      /must be an object, got 'x{80}'/,
    ],
    [
      'a long name of an option',
      (s) => s.operations.listDead({ ['x'.repeat(1 << 20)]: 1 }),
      /x is not an option/,
    ],
    [
      'a long value of an option',
      (s) => s.operations.listJobs({ state: 'x'.repeat(1 << 20) as never }),
      /must be one of/,
    ],
    [
      'a list of holes as tags',
      (s) => s.dispatch('work', null, { tags: holes(4e9) as string[] }),
      /at most 10 entries/,
    ],
  ];
  for (const [name, call, message] of INVALID) {
    it(`reject ${name} with INVALID_ARGUMENT`, async () => {
      const scheduler = await connected();
      const error = await errorOf(name, () => call(scheduler));
      assert.ok(error instanceof ChronosError, String(error));
      assert.equal(error.code, 'INVALID_ARGUMENT');
      assert.match(error.message, message);
      assert.ok(error.message.length < 1000);
    });
  }

  it('reject payloads that cannot be read with INVALID_PAYLOAD', async () => {
    const scheduler = await connected();
    const fakeId: unknown = Object.create(mongo.ObjectId.prototype);
    for (const payload of [fakeDate, { when: fakeDate }, { fakeId }, throwingGetter('x'), holes(30_000_000)])
      assert.equal((await rejectionOf(scheduler.dispatch('work', payload))).code, 'INVALID_PAYLOAD');
  });

  it('dispatch the other requests if one cannot be read', async () => {
    const scheduler = await connected();
    const requests = [{ taskType: 'work' }, revokedProxy({}), throwingGetter('then'), { taskType: 'work' }];
    const results = await scheduler.dispatchMany(requests as never);
    assert.deepEqual(
      results.map((result) => ('error' in result ? (result.error as ChronosError).code : 'stored')),
      ['stored', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'stored'],
    );
  });
});

/** What the call throws or rejects with; undefined if it succeeds. */
async function errorOf(name: string, call: () => unknown): Promise<unknown> {
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} does not end`)), MAX_CALL_MS);
  });
  try {
    await Promise.race([timeout, (async () => call())()]);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    clearTimeout(timer);
    const ms = performance.now() - startedAt;
    assert.ok(ms < MAX_CALL_MS, `${name} took ${ms} ms`);
  }
}

import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { seededRandom } from '../../support/seeded-random.js';

function nested(levels: number): unknown {
  return levels === 0 ? 'bottom' : { deeper: nested(levels - 1) };
}

/** Values that a store may change by accident. */
const EXACT: Record<string, unknown> = {
  null: null,
  'an empty object': {},
  'an empty array': [],
  'nested empty values': { a: {}, b: [], c: '', d: [[], [{}]] },
  zero: 0,
  'negative zero': -0,
  'large and small numbers': [
    Number.MAX_SAFE_INTEGER,
    Number.MIN_SAFE_INTEGER,
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    2 ** 31,
    -(2 ** 31) - 1,
    2 ** 53 + 2,
    0.1 + 0.2,
    1e21,
  ],
  'not a number and infinity': [NaN, Infinity, -Infinity],
  booleans: [true, false],
  'an empty text': '',
  'texts that look like expressions': ['$secret', '$100 off', '$$NOW', '{$ne: null}', 'a.b'],
  'NUL in a text': 'a\0b',
  'text of every plane': 'ß é 漢字 😀 👩‍👩‍👧 \u200f\u{10FFFF}',
  dates: [new Date(0), new Date(-1), new Date('2026-02-28T23:59:59.999Z'), new Date(8.64e15)],
  'keys with dots': { 'a.b': 1, 'a.b.c': { '.': 2 } },
  'keys like methods': { constructor: 1, toString: 2, hasOwnProperty: 3, then: 4, length: 5, _id: 6 },
  'an empty key': { '': 'nothing' },
  'keys like fields of the job': { status: 'x', payload: 'y', type: 'String', $dollar_inside: undefined },
  'numeric keys in order': { b: 1, a: 2, 1: 3, 0: 4 },
  'an array of mixed values': [1, 'two', null, [3, [4]], { five: 6 }],
  'an array with holes of null': [null, null],
  'an ObjectId': new mongo.ObjectId('65a000000000000000000001'),
  'fifty levels': nested(50),
  'a long text': 'x'.repeat(200_000),
};

const cycle: Record<string, unknown> = { name: 'cycle' };
cycle['self'] = cycle;

/** Values that cannot be stored exactly, and the error message for each. */
const REJECTED: Record<string, [unknown, RegExp]> = {
  'a function': [{ run: () => 1 }, /payload\.run is a function/],
  'a symbol': [[Symbol('x')], /payload\[0\] is a symbol/],
  'a bigint': [{ big: 10n }, /payload\.big is a bigint; store it as a string/],
  'undefined in an array': [[1, undefined], /payload\[1\] is undefined/],
  'a cycle': [cycle, /payload\.self refers back to itself/],
  'a key that starts with $': [{ a: { $set: 1 } }, /payload\.a\.\$set has a key that starts with '\$'/],
  'the key __proto__': [JSON.parse('{"__proto__": {"admin": true}}'), /__proto__/],
  'NUL in a key': [{ 'a\0b': 1 }, /NUL/],
  _bsontype: [{ _bsontype: 'ObjectId', id: 'x' }, /_bsontype/],
  'an instance of a class': [{ list: new Map() }, /payload\.list is a Map/],
  'a buffer': [Buffer.from('x'), /payload is a Buffer/],
  'an invalid date': [new Date(NaN), /payload is an invalid date/],
  'fifty-one levels': [nested(51), /deeper than 50 levels/],
  'more than 256 KiB': ['x'.repeat(256 * 1024), /has \d+ bytes, more than maxPayloadBytes \(262144\)/],
  'a lone surrogate': ['\ud800', /lone surrogate/],
};

describe('payloads', () => {
  const database = useSharedDatabase();

  it('reach the handler exactly as they were dispatched', async () => {
    const { scheduler } = manualScheduler(database);
    const received = new Map<string, unknown>();
    scheduler.registerHandler('work', (payload, job) => {
      received.set(job.id, payload);
      assert.deepEqual(job.payload, payload);
    });
    const sent = new Map<string, [string, unknown]>();
    for (const [name, value] of Object.entries(EXACT))
      sent.set((await scheduler.dispatch('work', value)).id, [name, value]);
    while ((await scheduler.run(100)) > 0);
    assert.equal(received.size, sent.size);
    for (const [id, [name, value]] of sent) {
      if (name === 'keys like fields of the job') delete (value as Record<string, unknown>)['$dollar_inside'];
      assert.deepStrictEqual(received.get(id), value, name);
      assert.deepStrictEqual((await scheduler.getJob(id))?.payload, value, name);
    }
  });

  it('that are generated at random reach the handler unchanged', async () => {
    const random = seededRandom(20_260_101);
    const pick = <T>(...choices: T[]): T => choices[Math.floor(random() * choices.length)]!;
    const text = (): string =>
      Array.from({ length: Math.floor(random() * 8) }, () =>
        String.fromCodePoint(pick(36, 46, 0, 97, 233, 0x6f22, 0x1f600, Math.floor(random() * 0xd7ff))),
      ).join('');
    const value = (depth: number): unknown => {
      if (depth > 4 || random() < 0.3)
        return pick<unknown>(
          null,
          true,
          text(),
          random() * 1e9,
          Math.floor((random() - 0.5) * 2 ** 53),
          new Date(random() * 4e12),
        );
      const length = Math.floor(random() * 5);
      if (random() < 0.5) return Array.from({ length }, () => value(depth + 1));
      return Object.fromEntries(
        Array.from({ length }, () => [text().replaceAll('\0', '').replace(/^\$+/, ''), value(depth + 1)]),
      );
    };
    const { scheduler } = manualScheduler(database);
    const received = new Map<string, unknown>();
    scheduler.registerHandler('work', (payload, job) => void received.set(job.id, payload));
    const payloads = Array.from({ length: 200 }, () => value(0));
    const results = await scheduler.dispatchMany(payloads.map((payload) => ({ taskType: 'work', payload })));
    while ((await scheduler.run(100)) > 0);
    results.forEach(({ id }, index) => assert.deepStrictEqual(received.get(id!), payloads[index]));
  });

  it('are null by default', async () => {
    const { scheduler } = manualScheduler(database);
    let received: unknown = 'nothing yet';
    scheduler.registerHandler('work', (payload) => {
      received = payload;
    });
    await scheduler.dispatch('work');
    await scheduler.run();
    assert.equal(received, null);
  });

  it('are copied, so that changes by a handler do not reach the next attempt', async () => {
    const { scheduler } = manualScheduler(database);
    const received: unknown[] = [];
    scheduler.registerHandler('work', (payload: { list: number[] }, job) => {
      received.push([...payload.list]);
      payload.list.push(2);
      if (job.attempt === 1) throw new Error('again');
    });
    const { id } = await scheduler.dispatch('work', { list: [1] }, { retries: { base: 0 } });
    while ((await scheduler.run()) > 0);
    assert.deepEqual(received, [[1], [1]]);
    assert.deepEqual((await scheduler.getJob(id))?.payload, { list: [1] });
  });

  for (const [name, [payload, message]] of Object.entries(REJECTED)) {
    it(`reject ${name} with a clear error, and nothing is stored`, async () => {
      const { scheduler } = manualScheduler(database);
      await assert.rejects(scheduler.dispatch('work', payload), { code: 'INVALID_PAYLOAD', message });
      assert.equal(await database.collections.jobs.countDocuments(), 0);
    });
  }

  it('report all problems at once', async () => {
    const { scheduler } = manualScheduler(database);
    const payload = { a: () => 1, list: [1n, undefined], $set: 1 };
    await assert.rejects(scheduler.dispatch('work', payload), (error: Error) => {
      for (const path of ['payload.a ', 'payload.list[0] ', 'payload.list[1] ', 'payload.$set '])
        assert.ok(error.message.includes(path), path);
      return true;
    });
  });

  it('can be limited with maxPayloadBytes', async () => {
    const { scheduler } = manualScheduler(database, { maxPayloadBytes: 1024 });
    await scheduler.dispatch('work', 'x'.repeat(900));
    await assert.rejects(scheduler.dispatch('work', 'x'.repeat(1100)), { code: 'INVALID_PAYLOAD' });
  });
});

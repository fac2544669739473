import assert from 'node:assert/strict';
import mongoose from 'mongoose';
import { copyPlainData, MAX_RESULT_BYTES, storedResult } from '../../../src/domain/plain-data.js';
import { revokedProxy, throwingGetter } from '../../support/fuzz.js';

function copyOf(value: unknown): unknown {
  const copied = copyPlainData(value, 'payload');
  return 'copy' in copied ? copied.copy : assert.fail(JSON.stringify(copied.errors));
}

function errorsOf(value: unknown): string[] {
  const copied = copyPlainData(value, 'payload');
  return 'errors' in copied ? copied.errors : [];
}

function nested(levels: number): unknown {
  let value: unknown = 'innermost';
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? { inner: value } : [value];
  return value;
}

const bytes = (value: unknown): number => Buffer.byteLength(value as string);

describe('copyPlainData', () => {
  describe('copies exactly', () => {
    for (const [what, value] of Object.entries({
      'simple values': [null, true, false, 'text', '', 0, 1.5, -7],
      'numbers at the edges': [Infinity, -Infinity, NaN, Number.MAX_SAFE_INTEGER, 5e-324],
      'minus zero': [-0],
      dates: { at: new Date('2026-01-01T00:00:00.123Z') },
      'empty objects and lists': { object: {}, list: [], deep: [{}, []] },
      'NUL in strings': { text: 'a\0b' },
      'emoji and other surrogate pairs': { text: '😀', '😀': 1 },
      'keys with dots or spaces, and the empty key': { 'a.b': 1, 'a b': 2, '': 3, a$: 4 },
      'keys with the names of inherited properties': {
        constructor: 1,
        toString: 2,
        hasOwnProperty: 3,
        then: 4,
      },
      'fifty levels': nested(50),
    })) {
      it(what, () => assert.deepEqual(copyOf(value), value));
    }

    it('MongoDB ids', () => {
      const id = new mongoose.Types.ObjectId();
      assert.deepEqual(copyOf({ id }), { id });
    });

    it('objects without a prototype', () => {
      const withoutPrototype = Object.assign(Object.create(null) as object, { a: 1 });
      assert.deepEqual(copyOf(withoutPrototype), { a: 1 });
    });

    it('the same object in two places, which is not a cycle', () => {
      const shared = { a: 1 };
      assert.deepEqual(copyOf([shared, shared]), [{ a: 1 }, { a: 1 }]);
    });
  });

  it('omits undefined properties, like JSON', () => {
    assert.deepEqual(copyOf({ a: undefined, b: 1 }), { b: 1 });
    assert.deepEqual(Object.keys(copyOf({ a: undefined }) as object), []);
  });

  describe('rejects, with the path', () => {
    class Money {
      amount = 1;
    }
    const cycle: Record<string, unknown> = {};
    cycle['list'] = [{ cycle }];
    const forged: unknown = JSON.parse('{"a": {"__proto__": {"admin": true}}}');
    // A hole in a list is undefined too.
    const sparse: unknown[] = [];
    sparse[1] = 1;

    for (const [what, value, error] of [
      ['a function', { run: () => 1 }, 'payload.run is a function, which cannot be stored'],
      ['a symbol', [Symbol('s')], 'payload[0] is a symbol, which cannot be stored'],
      ['a bigint', { n: 10n }, 'payload.n is a bigint; store it as a string'],
      ['undefined itself', undefined, 'payload is undefined; use null'],
      ['undefined in a list', [1, undefined], 'payload[1] is undefined; use null'],
      ['a hole in a list', sparse, 'payload[0] is undefined; use null'],
      ['a cycle', cycle, 'payload.list[0].cycle refers back to itself'],
      [
        'a query operator',
        { where: { $gt: '' } },
        "payload.where.$gt has a key that starts with '$', which MongoDB",
      ],
      ['__proto__ from JSON.parse', forged, 'payload.a.__proto__ has the key __proto__'],
      ['_bsontype', { _bsontype: 'ObjectId', id: 'x' }, 'payload._bsontype has the key _bsontype'],
      ['NUL in a key', { 'a\0b': 1 }, 'payload.a\0b has a key with a NUL character'],
      ['a lone surrogate', { text: 'a\ud83d' }, 'payload.text has a lone surrogate'],
      ['a lone surrogate in a key', { '\udc00': 1 }, 'payload.\udc00 has a key with a lone surrogate'],
      ['an invalid date', { at: new Date(NaN) }, 'payload.at is an invalid date'],
      [
        'a Map',
        { map: new Map() },
        'payload.map is a Map; only plain objects, arrays, dates and ObjectIds can be stored',
      ],
      ['a Set', new Set([1]), 'payload is a Set; only plain objects'],
      ['a Buffer', { bytes: Buffer.from('x') }, 'payload.bytes is a Buffer; only plain objects'],
      ['a RegExp', /x/, 'payload is a RegExp; only plain objects'],
      ['an Error', new Error('x'), 'payload is a Error; only plain objects'],
      ['a promise', { later: Promise.resolve() }, 'payload.later is a Promise; only plain objects'],
      ['an instance of a class', [new Money()], 'payload[0] is a Money; only plain objects'],
      ['an instance of an unnamed class', new (class {})(), 'payload is a object of an unnamed class'],
      ['a String object', { s: new String('x') }, 'payload.s is a String; only plain objects'],
      [
        'a fake Date',
        { at: Object.create(Date.prototype) as unknown },
        'payload.at is a Date; only plain objects',
      ],
      [
        'a fake ObjectId',
        Object.create(mongoose.Types.ObjectId.prototype),
        'payload is a ObjectId; only plain objects',
      ],
      ['a throwing getter', { a: [throwingGetter('b')] }, 'payload.a[0] cannot be read: from a getter'],
      ['a revoked proxy', { a: revokedProxy({}) }, 'payload.a cannot be read: '],
      [
        'thirty million holes',
        { a: new Array<unknown>(30_000_000) },
        'payload.a exceeds the limit of 1000000 values',
      ],
      ['more than fifty levels', nested(51), 'is nested deeper than 50 levels'],
    ] as const) {
      it(what, () => {
        const errors = errorsOf(value);
        assert.equal(errors.length, 1, errors.join());
        assert.ok(errors[0]?.includes(error), errors[0]);
      });
    }

    it('a forged MongoDB id', () => {
      const forged = new mongoose.Types.ObjectId();
      Object.defineProperty(forged, '_bsontype', { value: 'Code' });
      assert.equal(errorsOf({ forged }).length, 1);
    });

    it('only twenty of a billion problems', () => {
      const holes = new Array<unknown>(900_000);
      const errors = errorsOf(Array.from({ length: 1000 }, () => holes));
      assert.equal(errors.length, 21);
      assert.equal(errors.at(-1), '(more errors are not shown)');
    });

    it('every problem at once', () => {
      assert.deepEqual(
        errorsOf({ a: 1n, b: [() => 1], c: { $set: 1 } }).map((error) => error.split(' ')[0]),
        ['payload.a', 'payload.b[0]', 'payload.c.$set'],
      );
    });
  });

  it('stops after a million values, because a few shared objects can stand for billions', () => {
    let value: unknown = 'x';
    for (let i = 0; i < 45; i++) value = [value, value];
    assert.match(errorsOf(value).join(), /exceeds the limit of 1000000 values/);
  });

  it('does not pollute prototypes', () => {
    copyPlainData(
      JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}'),
      'p',
    );
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  it('makes a copy that later changes of the source do not affect', () => {
    const at = new Date('2026-01-01T00:00:00Z');
    const source = { list: [{ n: 1 }], at, inner: { text: 'before' } };
    const copy = copyOf(source);
    source.list[0]!.n = 2;
    source.list.push({ n: 3 });
    source.inner.text = 'after';
    at.setTime(0);
    const expected = { list: [{ n: 1 }], at: new Date('2026-01-01T00:00:00Z'), inner: { text: 'before' } };
    assert.deepEqual(copy, expected);
  });
});

describe('storedResult', () => {
  it('keeps a result of at most 16 KiB as data', () => {
    const result = { sent: true, at: new Date('2026-01-01T00:00:00Z'), list: [1, 'two', null] };
    assert.deepEqual(storedResult(result), { result, resultCut: false });
    for (const plain of [0, false, '', 'text']) {
      assert.deepEqual(storedResult(plain), { result: plain, resultCut: false });
    }
  });

  it('stores null if there is no result', () => {
    assert.deepEqual(storedResult(undefined), { result: null, resultCut: false });
    assert.deepEqual(storedResult(null), { result: null, resultCut: false });
  });

  it('keeps exactly 16 KiB unchanged and truncates a longer result to text', () => {
    const whole = 'x'.repeat(MAX_RESULT_BYTES - 2);
    assert.deepEqual(storedResult(whole), { result: whole, resultCut: false });
    const { result, resultCut } = storedResult(`${whole}x`);
    assert.equal(resultCut, true);
    assert.ok(bytes(result) <= MAX_RESULT_BYTES);
    assert.match(result as string, /^"x+… \(cut\)$/);
  });

  it('counts bytes, not characters', () => {
    const { result, resultCut } = storedResult({ text: '€'.repeat(6000) });
    assert.equal(resultCut, true);
    assert.ok(bytes(result) <= MAX_RESULT_BYTES && bytes(result) > MAX_RESULT_BYTES - 4);
  });

  it('stores JSON text if the result cannot be stored as data', () => {
    class Money {
      amount = 5;
    }
    assert.deepEqual(storedResult({ price: new Money() }), {
      result: '{"price":{"amount":5}}',
      resultCut: true,
    });
    assert.deepEqual(storedResult({ $set: 1 }), { result: '{"$set":1}', resultCut: true });
  });

  describe('never throws, so that a completed job does not fail because of', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const throwing = {
      get [Symbol.toStringTag](): string {
        throw new Error('no tag');
      },
      toJSON() {
        throw new Error('no JSON');
      },
    };
    const getter = {
      get x(): never {
        throw new Error('no x');
      },
    };
    let deep: unknown = [];
    for (let i = 0; i < 20_000; i++) deep = [deep];

    for (const [what, value] of [
      ['a cycle', cycle],
      ['a bigint', 10n],
      ['a function', () => 1],
      ['a symbol', Symbol('s')],
      ['an instance of a class', new URL('http://localhost')],
      ['a getter that throws', getter],
      ['an object that throws when it is read', throwing],
      ['a revoked proxy', revoked.proxy],
      ['20,000 levels of nesting', deep],
      ['an invalid date', new Date(NaN)],
    ] as const) {
      it(what, () => {
        const { result, resultCut } = storedResult(value);
        assert.equal(typeof result, 'string');
        assert.equal(resultCut, true);
        assert.ok(bytes(result) <= MAX_RESULT_BYTES);
      });
    }

    it('shared values that stand for billions of values', () => {
      let value: unknown = 'x';
      for (let i = 0; i < 40; i++) value = [value, value];
      assert.equal(storedResult(value).resultCut, true);
    });
  });
});

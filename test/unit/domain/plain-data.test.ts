import assert from 'node:assert/strict';
import mongoose from 'mongoose';
import { copyPlainData } from '../../../src/domain/plain-data.js';

function copyOf(value: unknown): unknown {
  const copied = copyPlainData(value, 'payload');
  return 'copy' in copied ? copied.copy : assert.fail(JSON.stringify(copied.errors));
}

function errorsOf(value: unknown): string[] {
  const copied = copyPlainData(value, 'payload');
  return 'errors' in copied ? copied.errors : [];
}

function nested(levels: number): unknown {
  let value: unknown = 'core';
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? { inner: value } : [value];
  return value;
}

describe('copyPlainData', () => {
  describe('keeps exactly', () => {
    for (const [what, value] of Object.entries({
      'the plain values': [null, true, false, 'text', '', 0, 1.5, -7],
      'numbers at the edges': [Infinity, -Infinity, NaN, Number.MAX_SAFE_INTEGER, 5e-324],
      'minus zero': [-0],
      dates: { at: new Date('2026-01-01T00:00:00.123Z') },
      'empty objects and lists': { object: {}, list: [], deep: [{}, []] },
      'NUL in strings': { text: 'a\0b' },
      'emoji and other pairs': { text: '😀', '😀': 1 },
      'keys with dots, spaces or nothing': { 'a.b': 1, 'a b': 2, '': 3, a$: 4 },
      'keys that objects inherit': { constructor: 1, toString: 2, hasOwnProperty: 3, then: 4 },
      'fifty levels': nested(50),
    })) {
      it(what, () => assert.deepEqual(copyOf(value), value));
    }

    it('MongoDB ids', () => {
      const id = new mongoose.Types.ObjectId();
      assert.deepEqual(copyOf({ id }), { id });
    });

    it('objects without a prototype', () => {
      const bare = Object.assign(Object.create(null) as object, { a: 1 });
      assert.deepEqual(copyOf(bare), { a: 1 });
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
        'an operator',
        { where: { $gt: '' } },
        "payload.where.$gt has a key that starts with '$', which MongoDB",
      ],
      ['__proto__ that JSON.parse made', forged, 'payload.a.__proto__ has the key __proto__'],
      ['_bsontype', { _bsontype: 'ObjectId', id: 'x' }, 'payload._bsontype has the key _bsontype'],
      ['NUL in a key', { 'a\0b': 1 }, 'payload.a\0b has a key with a NUL character'],
      ['a lone surrogate', { text: 'a\ud83d' }, 'payload.text has a lone surrogate'],
      ['a lone surrogate in a key', { '\udc00': 1 }, 'payload.\udc00 has a key with a lone surrogate'],
      ['an invalid date', { at: new Date(NaN) }, 'payload.at is an invalid date'],
      [
        'a Map',
        { map: new Map() },
        'payload.map is a Map; only plain objects, arrays and dates can be stored',
      ],
      ['a Set', new Set([1]), 'payload is a Set; only plain objects'],
      ['a Buffer', { bytes: Buffer.from('x') }, 'payload.bytes is a Buffer; only plain objects'],
      ['a RegExp', /x/, 'payload is a RegExp; only plain objects'],
      ['an Error', new Error('x'), 'payload is a Error; only plain objects'],
      ['a promise', { later: Promise.resolve() }, 'payload.later is a Promise; only plain objects'],
      ['an instance of a class', [new Money()], 'payload[0] is a Money; only plain objects'],
      ['an instance of an unnamed class', new (class {})(), 'payload is a object of an unnamed class'],
      ['a text in its object', { s: new String('x') }, 'payload.s is a String; only plain objects'],
      ['level fifty-one', nested(51), 'is nested deeper than 50 levels'],
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

    it('every problem at once', () => {
      assert.deepEqual(
        errorsOf({ a: 1n, b: [() => 1], c: { $set: 1 } }).map((error) => error.split(' ')[0]),
        ['payload.a', 'payload.b[0]', 'payload.c.$set'],
      );
    });
  });

  it('ends for a few objects that stand for billions of values', () => {
    let value: unknown = 'x';
    for (let i = 0; i < 45; i++) value = [value, value];
    assert.match(errorsOf(value).join(), /exceeds the limit of 1000000 values/);
  });

  it('reads nothing through a prototype', () => {
    copyPlainData(
      JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}'),
      'p',
    );
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  it('is not affected by later changes of the source', () => {
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

import assert from 'node:assert/strict';
import { MAX_RESULT_BYTES, storedResult } from '../../../src/domain/plain-data.js';

const bytes = (value: unknown): number => Buffer.byteLength(value as string);

describe('storedResult', () => {
  it('keeps a result that fits as data', () => {
    const result = { sent: true, at: new Date('2026-01-01T00:00:00Z'), list: [1, 'two', null] };
    assert.deepEqual(storedResult(result), { result, resultCut: false });
    for (const plain of [0, false, '', 'text']) {
      assert.deepEqual(storedResult(plain), { result: plain, resultCut: false });
    }
  });

  it('keeps null for no result', () => {
    assert.deepEqual(storedResult(undefined), { result: null, resultCut: false });
    assert.deepEqual(storedResult(null), { result: null, resultCut: false });
  });

  it('keeps 16 KiB unchanged and truncates one byte more to text', () => {
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

  it('keeps the JSON of what cannot be stored as data', () => {
    class Money {
      amount = 5;
    }
    assert.deepEqual(storedResult({ price: new Money() }), {
      result: '{"price":{"amount":5}}',
      resultCut: true,
    });
    assert.deepEqual(storedResult({ $set: 1 }), { result: '{"$set":1}', resultCut: true });
  });

  describe('never fails a completed job', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const hostile = {
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
    let endless: unknown = [];
    for (let i = 0; i < 20_000; i++) endless = [endless];

    for (const [what, value] of [
      ['a cycle', cycle],
      ['a bigint', 10n],
      ['a function', () => 1],
      ['a symbol', Symbol('s')],
      ['a response-like class', new URL('http://localhost')],
      ['a getter that throws', getter],
      ['a hostile object', hostile],
      ['a revoked proxy', revoked.proxy],
      ['endless nesting', endless],
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

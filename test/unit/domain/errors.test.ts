import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { ChronosError, redactCredentials, storedError, toError } from '../../../src/domain/errors.js';

describe('ChronosError', () => {
  it('has a name, a stable code and its cause', () => {
    const cause = new Error('below');
    const error = new ChronosError('LOCK_HELD', 'somebody has it', { cause });
    assert.ok(error instanceof Error);
    assert.deepEqual(
      [error.name, error.code, error.message],
      ['ChronosError', 'LOCK_HELD', 'somebody has it'],
    );
    assert.equal(error.cause, cause);
  });

  it('hides credentials in its message and its stack', () => {
    const error = new ChronosError('INVALID_OPTIONS', 'cannot use mongodb://root:hunter2@db:27017/app');
    assert.equal(error.message, 'cannot use mongodb://***@db:27017/app');
    assert.ok(!error.stack?.includes('hunter2'));
  });
});

describe('hideCredentials', () => {
  for (const uri of [
    'mongodb://user:secret@host/db',
    'mongodb+srv://user:secret@cluster.example.net',
    'MONGODB://user:secret@host',
    'mongodb://secret@host',
    'mongodb://user:se@secret@host',
    'mongodb://user:sec%2Fret-secret@a,b,c/db?replicaSet=rs',
    'redis://:secret@host',
    'https://user:secret@host/path',
  ]) {
    it(`hides what is secret in ${uri}`, () => {
      const hidden = redactCredentials(`before ${uri} after ${uri}`);
      assert.ok(!/secret|user/.test(hidden), hidden);
      assert.match(hidden, /^before \w[\w+]*:\/\/\*\*\*@\S+ after \w[\w+]*:\/\/\*\*\*@\S+$/);
    });
  }

  it('takes no time for long words', () => {
    const words = ['a', '://', '://a', '@'].map((word) => word.repeat(200_000));
    const began = performance.now();
    for (const word of words) redactCredentials(word);
    assert.ok(performance.now() - began < 1000);
  });

  it('leaves alone what is not secret', () => {
    for (const text of ['mongodb://host:27017/db', 'mail to a@b.c', 'see https://host/@user', '']) {
      assert.equal(redactCredentials(text), text);
    }
  });
});

describe('toError', () => {
  it('gives back an error as it is', () => {
    const error = new TypeError('x');
    assert.equal(toError(error), error);
  });

  for (const [thrown, message] of [
    ['text', 'text'],
    [null, 'a non-error was thrown: null'],
    [undefined, 'a non-error was thrown: undefined'],
    [42, 'a non-error was thrown: 42'],
    [10n, 'a non-error was thrown: [object BigInt]'],
    [{ code: 7 }, 'a non-error was thrown: {"code":7}'],
    [Symbol('s'), 'a non-error was thrown: Symbol(s)'],
  ] as const) {
    it(`describes ${inspect(thrown)}`, () => assert.equal(toError(thrown).message, message));
  }

  it('survives whatever refuses to be looked at', () => {
    const refuse = (): never => {
      throw new Error('no');
    };
    const traps = { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const weird: unknown[] = [
      new Proxy({}, traps),
      revoked.proxy,
      Object.create(null),
      { toString: refuse, toJSON: refuse, [Symbol.toPrimitive]: refuse },
      {
        toJSON: refuse,
        get [Symbol.toStringTag]() {
          return refuse();
        },
      },
    ];
    for (const thrown of weird) assert.match(toError(thrown).message, /^a non-error was thrown: /);
  });
});

describe('storedError', () => {
  it('keeps name, message, code and stack', () => {
    const error = Object.assign(new TypeError('wrong'), { code: 'E_WRONG' });
    assert.deepEqual(storedError(error), {
      name: 'TypeError',
      message: 'wrong',
      code: 'E_WRONG',
      stack: error.stack,
    });
    assert.equal(storedError(Object.assign(new Error('x'), { code: 11_000 })).code, '11000');
    assert.equal(storedError(Object.assign(new Error('x'), { code: { $ne: 1 } })).code, null);
  });

  it('cuts at 16 KiB', () => {
    const error = new Error('€'.repeat(20_000));
    error.stack = '€'.repeat(20_000);
    const { message, stack } = storedError(error);
    for (const text of [message, stack ?? '']) {
      assert.ok(Buffer.byteLength(text) <= 16 * 1024 && Buffer.byteLength(text) > 16 * 1024 - 4);
      assert.match(text, /^€+… \(cut\)$/);
    }
  });

  it('hides credentials in message and stack', () => {
    const stored = storedError(new Error('no answer from mongodb://root:hunter2@db'));
    assert.ok(!JSON.stringify(stored).includes('hunter2'));
  });

  it('survives errors whose parts are no text, or cannot be read', () => {
    const odd = Object.assign(new Error('x'), { name: 7, message: { a: 1 }, stack: 9, code: null });
    assert.deepEqual(storedError(odd as unknown as Error).stack, null);
    const hostile = new Error('x');
    for (const part of ['stack', 'name', 'message', 'code']) {
      Object.defineProperty(hostile, part, {
        get() {
          throw new Error(`no ${part}`);
        },
      });
    }
    const silent = Object.assign(new Error('x'), { message: Object.create(null) as string });
    for (const error of [hostile, silent]) assert.equal(typeof storedError(error).message, 'string');
  });
});

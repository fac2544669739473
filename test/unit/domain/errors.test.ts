import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { ChronosError, redactCredentials, storedError, toError } from '../../../src/domain/errors.js';

describe('ChronosError', () => {
  it('has a name, a stable code and its cause', () => {
    const cause = new Error('below');
    const error = new ChronosError('LOCK_HELD', 'the lock is held', { cause });
    assert.ok(error instanceof Error);
    assert.deepEqual(
      [error.name, error.code, error.message],
      ['ChronosError', 'LOCK_HELD', 'the lock is held'],
    );
    assert.equal(error.cause, cause);
  });

  it('redacts credentials in its message and its stack', () => {
    const error = new ChronosError('INVALID_OPTIONS', 'cannot use mongodb://root:hunter2@db:27017/app');
    assert.equal(error.message, 'cannot use mongodb://***@db:27017/app');
    assert.ok(!error.stack?.includes('hunter2'));
  });
});

describe('redactCredentials', () => {
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
    it(`redacts ${uri}`, () => {
      const hidden = redactCredentials(`before ${uri} after ${uri}`);
      assert.ok(!/secret|user/.test(hidden), hidden);
      assert.match(hidden, /^before \w[\w+]*:\/\/\*\*\*@\S+ after \w[\w+]*:\/\/\*\*\*@\S+$/);
    });
  }

  it('takes linear time for long words', () => {
    const words = ['a', '://', '://a', '@'].map((word) => word.repeat(200_000));
    // CPU time, because other processes may keep this one waiting. Quadratic time would be minutes.
    const before = process.cpuUsage();
    for (const word of words) redactCredentials(word);
    assert.ok(process.cpuUsage(before).user < 5_000_000);
  });

  it('does not change text without credentials', () => {
    for (const text of ['mongodb://host:27017/db', 'mail to a@b.c', 'see https://host/@user', '']) {
      assert.equal(redactCredentials(text), text);
    }
  });
});

describe('toError', () => {
  it('returns an error unchanged', () => {
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

  it('describes objects that throw when they are read', () => {
    const throwError = (): never => {
      throw new Error('no');
    };
    const traps = { get: throwError, has: throwError, getPrototypeOf: throwError, ownKeys: throwError };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const unreadable: unknown[] = [
      new Proxy({}, traps),
      revoked.proxy,
      Object.create(null),
      { toString: throwError, toJSON: throwError, [Symbol.toPrimitive]: throwError },
      {
        toJSON: throwError,
        get [Symbol.toStringTag]() {
          return throwError();
        },
      },
    ];
    for (const thrown of unreadable) assert.match(toError(thrown).message, /^a non-error was thrown: /);
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

  it('truncates message and stack to 16 KiB', () => {
    const error = new Error('€'.repeat(20_000));
    error.stack = '€'.repeat(20_000);
    const { message, stack } = storedError(error);
    for (const text of [message, stack ?? '']) {
      assert.ok(Buffer.byteLength(text) <= 16 * 1024 && Buffer.byteLength(text) > 16 * 1024 - 4);
      assert.match(text, /^€+… \(cut\)$/);
    }
  });

  it('redacts credentials in message and stack', () => {
    const stored = storedError(new Error('no response from mongodb://root:hunter2@db'));
    assert.ok(!JSON.stringify(stored).includes('hunter2'));
  });

  it('accepts errors with properties that are not text or cannot be read', () => {
    const odd = Object.assign(new Error('x'), { name: 7, message: { a: 1 }, stack: 9, code: null });
    assert.deepEqual(storedError(odd as unknown as Error).stack, null);
    const throwing = new Error('x');
    for (const property of ['stack', 'name', 'message', 'code']) {
      Object.defineProperty(throwing, property, {
        get() {
          throw new Error(`no ${property}`);
        },
      });
    }
    const unprintable = Object.assign(new Error('x'), { message: Object.create(null) as string });
    for (const error of [throwing, unprintable]) assert.equal(typeof storedError(error).message, 'string');
  });
});

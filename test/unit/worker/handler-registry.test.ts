import assert from 'node:assert/strict';
import type { JobContext } from '../../../src/worker/handler.js';
import { HandlerRegistry, isHandlerClass, taskTypeOf } from '../../../src/worker/handler-registry.js';

const job = { id: 'a', taskType: 'work' } as JobContext;

describe('HandlerRegistry', () => {
  let registry: HandlerRegistry;
  beforeEach(() => (registry = new HandlerRegistry()));

  const run = (handler: unknown): unknown => {
    registry.register('work', handler);
    return registry.get('work')?.run('payload', job);
  };

  describe('J6 looks for a handler in this order:', () => {
    it('a function', async () => {
      assert.deepEqual(await run((...args: unknown[]) => args), ['payload', job]);
    });

    it('a static handle, before that of an instance, called on its class', async () => {
      class Both {
        static greeting = 'static';
        static handle(...args: unknown[]): unknown {
          return [this.greeting, ...args];
        }
        handle(): string {
          return 'instance';
        }
      }
      assert.deepEqual(await run(Both), ['static', 'payload', job]);
    });

    it('the handle of an instance, before execute, a new instance for each job', async () => {
      let instances = 0;
      class Greeter {
        readonly number = ++instances;
        handle(...args: unknown[]): unknown {
          return [this.number, ...args];
        }
        execute(): boolean {
          return false;
        }
      }
      assert.deepEqual(await run(Greeter), [1, 'payload', job]);
      assert.deepEqual(await registry.get('work')?.run('payload', job), [2, 'payload', job]);
    });

    it('the execute of an instance, which is given the job', async () => {
      const given: unknown[] = [];
      class Old {
        execute(...args: unknown[]): boolean {
          given.push(this instanceof Old, ...args);
          return true;
        }
      }
      assert.equal(await run(Old), undefined);
      assert.deepEqual(given, [true, job]);
    });

    it('an error that says what is possible', () => {
      class Nothing {}
      for (const handler of [
        Nothing,
        {},
        { handle: 'text' },
        { execute: () => true },
        undefined,
        null,
        'f',
        7,
      ]) {
        assert.throws(() => registry.register('work', handler), {
          code: 'HANDLER_INVALID',
          message: /^the handler for 'work' must be a function, a class with handle/,
        });
      }
      assert.deepEqual(registry.taskTypes, []);
    });
  });

  it('takes an object with handle, called on it', async () => {
    const greeter = {
      greeting: 'hello',
      handle(payload: unknown): unknown {
        return [this.greeting, payload];
      },
    };
    assert.deepEqual(await run(greeter), ['hello', 'payload']);
  });

  it('finds handle where it was inherited', async () => {
    class Base {
      handle(): string {
        return 'inherited';
      }
    }
    class Derived extends Base {}
    assert.equal(await run(Derived), 'inherited');
  });

  for (const [what, answer] of [
    ['false', false],
    ['a promise of false', Promise.resolve(false)],
  ] as const) {
    it(`Y11 takes ${what} from execute for a failure`, async () => {
      class Old {
        execute(): unknown {
          return answer;
        }
      }
      await assert.rejects(async () => run(Old), { code: 'JOB_RETURNED_FALSE' });
    });
  }

  it('Y11 takes anything but false from execute for done', async () => {
    for (const value of [true, undefined, 0, '', null]) {
      class Old {
        execute(): unknown {
          return value;
        }
      }
      registry = new HandlerRegistry();
      assert.equal(await run(Old), undefined);
    }
  });

  it('knows nothing but what was registered', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      assert.equal(registry.get(name), undefined);
      const handler = (): string => name;
      registry.register(name, handler);
      assert.equal(registry.get(name)?.run, handler);
    }
    assert.equal(registry.taskTypes.length, 4);
  });

  it('refuses another handler under a name that is taken', () => {
    const handler = (): number => 1;
    registry.register('work', handler);
    assert.doesNotThrow(() => registry.register('work', handler));
    assert.throws(() => registry.register('work', () => 1), { code: 'HANDLER_EXISTS', message: /'work'/ });
    assert.equal(registry.get('work')?.run, handler);
  });

  it('refuses names that are none, and options that are wrong, and registers nothing then', () => {
    for (const name of ['', 'a@b', { $ne: 1 }, undefined]) {
      assert.throws(() => registry.register(name, () => 1), { code: 'INVALID_ARGUMENT' });
    }
    assert.throws(() => registry.register('work', () => 1, { concurrency: 1 }), { code: 'INVALID_OPTIONS' });
    assert.deepEqual(registry.taskTypes, []);
  });

  it('tells of each new handler', () => {
    let told = 0;
    const handler = (): number => 1;
    registry.onChange(() => told++);
    registry.register('a', handler);
    registry.register('a', handler);
    registry.register('b', handler);
    assert.equal(told, 2);
  });
});

describe('taskTypeOf', () => {
  it('is the static taskType, else the name of the class', () => {
    class SendEmail {}
    class Minified {
      static taskType = 'sendEmail';
    }
    assert.equal(taskTypeOf(SendEmail), 'SendEmail');
    assert.equal(taskTypeOf(Minified), 'sendEmail');
  });

  it('refuses a class with neither', () => {
    class WithEmpty {
      static taskType = '';
    }
    const unnamed = (() => class {})();
    for (const handlerClass of [unnamed, WithEmpty]) {
      assert.throws(() => taskTypeOf(handlerClass), { code: 'HANDLER_INVALID', message: /static taskType/ });
    }
  });
});

describe('isHandlerClass', () => {
  it('tells classes that can handle from names, functions and objects', () => {
    const can = [
      class {
        static handle(): void {}
      },
      class {
        handle(): void {}
      },
      class {
        execute(): boolean {
          return true;
        }
      },
    ];
    for (const value of can) assert.equal(isHandlerClass(value), true);
    const handle = (): number => 1;
    for (const value of ['emails', handle, function old() {}, { handle }, class {}, null, undefined]) {
      assert.equal(isHandlerClass(value), false);
    }
  });
});

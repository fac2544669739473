import assert from 'node:assert/strict';
import { isHandlerClass, taskTypeOf } from '../../../src/handlers/handler-function.js';

describe('taskTypeOf', () => {
  it('is the static taskType, else the name of the class', () => {
    class SendEmail {}
    class Minified {
      static taskType = 'sendEmail';
    }
    assert.equal(taskTypeOf(SendEmail), 'SendEmail');
    assert.equal(taskTypeOf(Minified), 'sendEmail');
  });

  it('rejects a class that has neither', () => {
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
  it('is true only for classes that can handle jobs, not for names, functions and objects', () => {
    const handlerClasses = [
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
    for (const value of handlerClasses) assert.equal(isHandlerClass(value), true);
    const handle = (): number => 1;
    for (const value of ['emails', handle, function old() {}, { handle }, class {}, null, undefined]) {
      assert.equal(isHandlerClass(value), false);
    }
  });
});

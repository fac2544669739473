import assert from 'node:assert/strict';
import { z } from 'zod';
import {
  handlerOf,
  registerTask,
  requireHandler,
  taskFor,
  taskOf,
  type Task,
} from '../../../src/schedules/task.js';
import type { JobContext } from '../../../src/worker/handler.js';
import { HandlerRegistry, type DefinedTask } from '../../../src/worker/handler-registry.js';
import { aContext } from '../built-in/context.js';

class Report {
  static handle(payload: unknown): unknown {
    return ['static', payload];
  }
}

describe('taskFor', () => {
  it('J6 without a handler: the one of the same name', () => {
    assert.deepEqual(taskFor('report', undefined), { kind: 'own', label: 'report' });
  });

  it('J6 a function, a class or an object', () => {
    const object = { handle: () => 1 };
    for (const handler of [() => 1, Report, object])
      assert.deepEqual(taskFor('report', handler), { kind: 'handler', label: 'report', handler });
  });

  it('J6 the name of a task type', () => {
    const task = { kind: 'taskType', label: 'sendEmail', taskType: 'sendEmail' };
    assert.deepEqual(taskFor('report', 'sendEmail'), task);
  });

  it('J6 what cannot be the name of a task type', () => {
    for (const name of ['', 'a@b', 'a#b'])
      assert.throws(() => taskFor('report', name), {
        code: 'INVALID_ARGUMENT',
        message: /^a task type must/,
      });
  });
});

describe('taskOf', () => {
  it('D1 a function or a class, called by its name', () => {
    function tidyUp(): void {}
    const ofFunction = taskOf(tidyUp, { deep: true });
    assert.deepEqual(ofFunction.task, { kind: 'handler', label: 'tidyUp', handler: tidyUp });
    assert.deepEqual(ofFunction.payload, { deep: true });
    assert.equal(taskOf(Report, null).task.label, 'Report');
  });

  it('D1 D2 a function without a name is a closure, and keeps its payload', () => {
    const [fn] = [(): number => 1];
    assert.equal(fn.name, '');
    assert.deepEqual(taskOf(fn, { deep: true }), {
      task: { kind: 'closure', label: 'closure', handler: fn, source: String(fn) },
      payload: { deep: true },
    });
  });

  it('D1 a class by its static taskType', () => {
    class Named extends Report {
      static taskType = 'report:monthly';
    }
    assert.equal(taskOf(Named, null).task.label, 'report:monthly');
  });

  it('D1 an object with a handle method', () => {
    const object = { handle: (payload: unknown) => payload };
    assert.deepEqual(taskOf(object, 7), {
      task: { kind: 'handler', label: 'object', handler: object },
      payload: 7,
    });
  });

  it('D2 closure: a function, which takes no payload', () => {
    const fn = (): string => 'done';
    const { task, payload } = taskOf('closure', fn);
    assert.deepEqual(task, { kind: 'closure', label: 'closure', handler: fn, source: String(fn) });
    assert.equal(payload, null);
    for (const bad of [undefined, null, 'fn', {}])
      assert.throws(() => taskOf('closure', bad), {
        code: 'HANDLER_INVALID',
        message: /^define\('closure', fn\) takes a function, got /,
      });
  });

  it('D2 command: by name, or with arguments', () => {
    const task = { kind: 'taskType', label: 'command', taskType: 'command:app:report' };
    assert.deepEqual(taskOf('command', 'app:report'), { task, payload: null });
    assert.deepEqual(taskOf('command', { command: 'app:report', args: { month: 5 } }), {
      task,
      payload: { month: 5 },
    });
    for (const bad of [undefined, null, '', {}, { command: '' }, { command: 5 }, ['app:report'], 5])
      assert.throws(() => taskOf('command', bad), {
        code: 'INVALID_PAYLOAD',
        message: /^define\('command', …\) takes the name of a command/,
      });
  });

  it('D2 command: a part that is misspelt is not ignored', () => {
    assert.throws(() => taskOf('command', { command: 'app:report', arguments: { month: 5 } }), {
      code: 'INVALID_PAYLOAD',
      message: /arguments/,
    });
  });

  it('D2 shell: a list or an object, never a plain string', () => {
    const { task } = taskOf('shell', ['ls', '-la']);
    assert.deepEqual(task, { kind: 'shell', label: 'shell', command: { file: 'ls', args: ['-la'] } });
    assert.throws(() => taskOf('shell', 'ls -la'), { code: 'SHELL_REFUSED' });
    for (const bad of [undefined, null, [], [5], {}, { file: '' }, { file: 'ls', argz: [] }])
      assert.throws(() => taskOf('shell', bad), { code: 'INVALID_PAYLOAD' });
  });

  it('D2 url, event and task types of the application', () => {
    for (const type of ['url', 'event', 'sendEmail'])
      assert.deepEqual(taskOf(type, { a: 1 }), {
        task: { kind: 'taskType', label: type, taskType: type },
        payload: { a: 1 },
      });
    for (const bad of ['', 'a@b', undefined, null, 5])
      assert.throws(() => taskOf(bad, null), { code: 'INVALID_ARGUMENT', message: /^a task type must/ });
  });
});

describe('handlerOf', () => {
  it('J6 the task type that a definition runs, if it is not its own', () => {
    assert.equal(handlerOf(taskFor('nightly', 'sendEmail')), 'sendEmail');
    assert.equal(handlerOf(taskOf('url', 'https://example.com').task), 'url');
    assert.equal(handlerOf(taskOf('command', 'app:report').task), 'command:app:report');
  });

  it('J6 none for what brings its handler along, or has one of its name', () => {
    const tasks = [
      taskFor('report', undefined),
      taskFor('report', Report),
      taskOf('closure', () => 1).task,
      taskOf('shell', ['ls']).task,
    ];
    for (const task of tasks) assert.equal(handlerOf(task), undefined, task.kind);
  });
});

describe('the task of a definition', () => {
  let registry: HandlerRegistry;

  beforeEach(() => {
    registry = new HandlerRegistry();
  });

  /** As a definition does it. */
  function define(name: string, task: Task, more: Partial<DefinedTask> = {}): void {
    registerTask(registry, name, task);
    registry.define(name, {
      options: {},
      around: { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] },
      defaults: { payload: null, queue: null, priority: 100, maxRunningTime: null },
      handledBy: handlerOf(task),
      isServed: true,
      ...more,
    });
  }

  const run = async (name: string, payload: unknown, job: Partial<JobContext> = {}): Promise<unknown> =>
    registry.get(name)!.run(payload, aContext({ taskType: name, ...job }));

  it('J6 functions, classes and objects run under the name of the definition', async () => {
    define(
      'a',
      taskFor('a', (payload: unknown) => ['function', payload]),
    );
    define('b', taskFor('b', Report));
    define('c', taskFor('c', { handle: (payload: unknown) => ['object', payload] }));
    assert.deepEqual(await run('a', 1), ['function', 1]);
    assert.deepEqual(await run('b', 2), ['static', 2]);
    assert.deepEqual(await run('c', 3), ['object', 3]);
  });

  it('J6 what is no handler is refused', () => {
    for (const bad of [null, 5, {}, ['x'], class Empty {}])
      assert.throws(() => registerTask(registry, 'a', taskFor('a', bad)), { code: 'HANDLER_INVALID' });
    for (const bad of [{}, ['x'], { handle: 5 }, class Empty {}, class {}])
      assert.throws(() => registerTask(registry, 'a', taskOf(bad, null).task), { code: 'HANDLER_INVALID' });
    assert.deepEqual(registry.taskTypes, []);
  });

  it('J6 only what a definition brings along is registered for it', () => {
    registry.register('sendEmail', () => 1);
    registerTask(registry, 'sendEmail', taskFor('sendEmail', undefined));
    registerTask(registry, 'nightly', taskFor('nightly', 'sendEmail'));
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('J6 a task type runs as itself, with the job of the definition', async () => {
    registry.register('sendEmail', (payload: unknown, job: JobContext) => [payload, job.taskType, job.id]);
    define('nightly', taskFor('nightly', 'sendEmail'));
    assert.deepEqual(await run('nightly', { to: 'ada' }, { id: 'x' }), [{ to: 'ada' }, 'nightly', 'x']);
    assert.deepEqual(registry.taskTypes, ['sendEmail', 'nightly']);
  });

  it('J6 it may be registered later: until then nothing is claimed for it', async () => {
    define('nightly', taskFor('nightly', 'sendEmail'));
    assert.deepEqual([registry.get('nightly'), registry.taskTypes], [undefined, []]);
    registry.register('sendEmail', (payload: unknown) => ['sent', payload]);
    assert.deepEqual(await run('nightly', 1), ['sent', 1]);
    assert.deepEqual(registry.taskTypes, ['sendEmail', 'nightly']);
  });

  it('J6 under its own name it is not registered a second time', () => {
    registry.register('sendEmail', () => 1);
    define('sendEmail', taskFor('sendEmail', 'sendEmail'));
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('D8 nothing is claimed for one that is meant for elsewhere', () => {
    registry.register('sendEmail', () => 1);
    registry.register('report', () => 2);
    define('nightly', taskFor('nightly', 'sendEmail'), { isServed: false });
    define('report', taskFor('report', undefined), { isServed: false });
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('J6 with the options that its handler was registered with', () => {
    const options = {
      timeout: '2m',
      retries: { max: 7 },
      lease: '30s',
      schema: z.object({ to: z.string() }),
    };
    registry.register('sendEmail', () => 1, options);
    define('nightly', taskFor('nightly', 'sendEmail'));
    const { timeout, retries, lease, schema } = registry.get('nightly')!.options;
    assert.deepEqual([timeout, retries, lease], [120_000, { max: 7 }, 30_000]);
    assert.equal(schema, options.schema);
  });

  it('J6 J12 and with what the definition adds, which the task type itself does not have', () => {
    const defaults = { payload: { n: 1 }, queue: 'mails', priority: 7, maxRunningTime: 60_000 };
    const around = { when: [() => true], skip: [], before: [], onSuccess: [], onError: [], after: [] };
    registry.register('sendEmail', () => 1, { timeout: '2m', lease: '30s' });
    define('nightly', taskFor('nightly', 'sendEmail'), { options: { timeout: 5000 }, around, defaults });
    const nightly = registry.get('nightly')!;
    assert.deepEqual(nightly.options, { timeout: 5000, lease: 30_000 });
    assert.deepEqual([nightly.around, nightly.defaults], [around, defaults]);
    const sendEmail = registry.get('sendEmail')!;
    assert.deepEqual(sendEmail.options, { timeout: 120_000, lease: 30_000 });
    assert.deepEqual([sendEmail.around, sendEmail.defaults], [undefined, undefined]);
  });

  it('J6 one that nobody registered is an error, with a hint', () => {
    registry.register('sendEmail', () => 1);
    const misspelt = taskFor('nightly', 'sendEmial');
    define('nightly', misspelt);
    assert.throws(() => requireHandler(registry, 'nightly', misspelt), {
      code: 'HANDLER_INVALID',
      message: /^schedule 'nightly' has no handler: .*'sendEmial' \(did you mean 'sendEmail'\?\)/,
    });
    const own = taskFor('report', undefined);
    define('report', own);
    assert.throws(() => requireHandler(registry, 'report', own), {
      code: 'HANDLER_INVALID',
      message: /^schedule 'report' has no handler/,
    });
  });

  it('D2 a command that nobody registered is an error, with a hint', () => {
    registry.register('command:app:report', () => 1);
    const { task } = taskOf('command', 'app:reprot');
    define('nightly', task);
    assert.throws(() => requireHandler(registry, 'nightly', task), {
      code: 'COMMAND_UNKNOWN',
      message:
        /^schedule 'nightly' runs the command 'app:reprot', which is not registered: use registerCommand\(\) \(did you mean 'app:report'\?\)/,
    });
  });

  it('J6 D2 whatever has a handler is no error', () => {
    registry.register('sendEmail', () => 1);
    registry.register('command:app:report', () => 2);
    const tasks: [string, Task][] = [
      ['sendEmail', taskFor('sendEmail', undefined)],
      ['a', taskFor('a', () => 1)],
      ['b', taskFor('b', 'sendEmail')],
      ['c', taskOf('command', 'app:report').task],
      ['d', taskOf('closure', () => 1).task],
      ['e', taskOf('shell', ['ls']).task],
    ];
    for (const [name, task] of tasks) {
      define(name, task);
      requireHandler(registry, name, task);
    }
  });

  it('D2 a command runs with its arguments', async () => {
    registry.register('command:app:report', (args: unknown) => ['report', args]);
    define('nightly', taskOf('command', 'app:report').task);
    assert.deepEqual(await run('nightly', { month: 5 }), ['report', { month: 5 }]);
  });

  it('D2 shell runs what the code says, whatever the payload says', async () => {
    define('version', taskOf('shell', [process.execPath, '--version']).task);
    const result = await run('version', [process.execPath, '-e', 'console.log("other")']);
    assert.deepEqual(result, { exitCode: 0, stdout: `${process.version}\n`, stderr: '', cut: false });
  });

  it('D2 a closure runs under the name of the definition', async () => {
    define('tidy', taskOf('closure', (payload: unknown) => ['closure', payload]).task);
    assert.deepEqual(await run('tidy', 1), ['closure', 1]);
  });

  it('J6 the same task twice is fine', () => {
    const task = taskFor('a', () => 1);
    registerTask(registry, 'a', task);
    registerTask(registry, 'a', task);
    assert.deepEqual(registry.taskTypes, ['a']);
  });
});

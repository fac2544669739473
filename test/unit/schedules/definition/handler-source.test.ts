import assert from 'node:assert/strict';
import { z } from 'zod';
import type { DefinedTask, HandlerRegistry } from '../../../../src/handlers/handler-registry.js';
import type { JobContext } from '../../../../src/domain/job/handler.js';
import {
  findMissingHandler,
  handlerTaskType,
  registerHandler,
  type HandlerSource,
  sourceForSchedule,
  sourceForDefine,
} from '../../../../src/schedules/definition/handler-source.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { aRegistry } from '../../../support/factories/handler-registry.js';

class Report {
  static handle(payload: unknown): unknown {
    return ['static', payload];
  }
}

const NO_VARIABLES = { shellInheritEnv: [] };

describe('sourceForSchedule', () => {
  it('without a handler uses the registered one of the same name [J6]', () => {
    assert.deepEqual(sourceForSchedule('report', undefined), { kind: 'own', label: 'report' });
  });

  it('accepts a function, a class or an object [J6]', () => {
    const object = { handle: () => 1 };
    for (const handler of [() => 1, Report, object])
      assert.deepEqual(sourceForSchedule('report', handler), { kind: 'handler', label: 'report', handler });
  });

  it('accepts the name of a task type [J6]', () => {
    const task = { kind: 'taskType', label: 'sendEmail', taskType: 'sendEmail' };
    assert.deepEqual(sourceForSchedule('report', 'sendEmail'), task);
  });

  it('rejects an invalid name of a task type [J6]', () => {
    for (const name of ['', 'a@b', 'a=b'])
      assert.throws(() => sourceForSchedule('report', name), {
        code: 'INVALID_ARGUMENT',
        message: /^a task type must/,
      });
  });
});

describe('sourceForDefine', () => {
  it('accepts a function or a class, with its name [D1]', () => {
    function tidyUp(): void {}
    const ofFunction = sourceForDefine(tidyUp, { deep: true });
    assert.deepEqual(ofFunction.task, { kind: 'handler', label: 'tidyUp', handler: tidyUp });
    assert.deepEqual(ofFunction.payload, { deep: true });
    assert.equal(sourceForDefine(Report, null).task.label, 'Report');
  });

  it('accepts a function without a name, which is a closure and keeps its payload [D1] [D2]', () => {
    const [fn] = [(): number => 1];
    assert.equal(fn.name, '');
    assert.deepEqual(sourceForDefine(fn, { deep: true }), {
      task: { kind: 'closure', label: 'closure', handler: fn, source: String(fn) },
      payload: { deep: true },
    });
  });

  it('accepts a class with a static taskType [D1]', () => {
    class Named extends Report {
      static taskType = 'report:monthly';
    }
    assert.equal(sourceForDefine(Named, null).task.label, 'report:monthly');
  });

  it('accepts an object with a handle method [D1]', () => {
    const object = { handle: (payload: unknown) => payload };
    assert.deepEqual(sourceForDefine(object, 7), {
      task: { kind: 'handler', label: 'object', handler: object },
      payload: 7,
    });
  });

  it('accepts a closure, a function without a payload [D2]', () => {
    const fn = (): string => 'done';
    const { task, payload } = sourceForDefine('closure', fn);
    assert.deepEqual(task, { kind: 'closure', label: 'closure', handler: fn, source: String(fn) });
    assert.equal(payload, null);
    for (const bad of [undefined, null, 'fn', {}])
      assert.throws(() => sourceForDefine('closure', bad), {
        code: 'HANDLER_INVALID',
        message: /^define\('closure', fn\) takes a function, got /,
      });
  });

  it('accepts a command, by name or with arguments [D2]', () => {
    const task = { kind: 'taskType', label: 'command', taskType: 'command:app:report' };
    assert.deepEqual(sourceForDefine('command', 'app:report'), { task, payload: null });
    assert.deepEqual(sourceForDefine('command', { command: 'app:report', args: { month: 5 } }), {
      task,
      payload: { month: 5 },
    });
    for (const bad of [undefined, null, '', {}, { command: '' }, { command: 5 }, ['app:report'], 5])
      assert.throws(() => sourceForDefine('command', bad), {
        code: 'INVALID_PAYLOAD',
        message: /^define\('command', …\) takes the name of a command/,
      });
  });

  it('rejects a misspelled part of a command [D2]', () => {
    assert.throws(() => sourceForDefine('command', { command: 'app:report', arguments: { month: 5 } }), {
      code: 'INVALID_PAYLOAD',
      message: /arguments/,
    });
  });

  it('accepts a shell command as a list or an object, never a plain string [D2]', () => {
    const { task } = sourceForDefine('shell', ['ls', '-la']);
    assert.deepEqual(task, { kind: 'shell', label: 'shell', command: { file: 'ls', args: ['-la'] } });
    assert.throws(() => sourceForDefine('shell', 'ls -la'), { code: 'SHELL_REFUSED' });
    for (const bad of [undefined, null, [], [5], {}, { file: '' }, { file: 'ls', argz: [] }])
      assert.throws(() => sourceForDefine('shell', bad), { code: 'INVALID_PAYLOAD' });
  });

  it('accepts url, event or a task type of the application [D2]', () => {
    for (const type of ['url', 'event', 'sendEmail'])
      assert.deepEqual(sourceForDefine(type, { a: 1 }), {
        task: { kind: 'taskType', label: type, taskType: type },
        payload: { a: 1 },
      });
    for (const bad of ['', 'a@b', undefined, null, 5])
      assert.throws(() => sourceForDefine(bad, null), {
        code: 'INVALID_ARGUMENT',
        message: /^a task type must/,
      });
  });
});

describe('handlerTaskType', () => {
  it('is the task type that the definition runs, if it differs from its own name [J6]', () => {
    assert.equal(handlerTaskType(sourceForSchedule('nightly', 'sendEmail')), 'sendEmail');
    assert.equal(handlerTaskType(sourceForDefine('url', 'https://example.com').task), 'url');
    assert.equal(handlerTaskType(sourceForDefine('command', 'app:report').task), 'command:app:report');
  });

  it('is undefined for a source with its own handler or with a handler of the same name [J6]', () => {
    const tasks = [
      sourceForSchedule('report', undefined),
      sourceForSchedule('report', Report),
      sourceForDefine('closure', () => 1).task,
      sourceForDefine('shell', ['ls']).task,
    ];
    for (const task of tasks) assert.equal(handlerTaskType(task), undefined, task.kind);
  });
});

describe('the handler of a definition', () => {
  let registry: HandlerRegistry;

  beforeEach(() => {
    registry = aRegistry();
  });

  /** Registers the handler and the definition, as DefinitionRegistry does. */
  function define(name: string, task: HandlerSource, more: Partial<DefinedTask> = {}): void {
    registerHandler(registry, name, task, NO_VARIABLES);
    registry.define(name, {
      options: {},
      hooks: { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] },
      defaults: { payload: null, queue: null, priority: 100, maxRunningTime: null, expiresIn: null },
      handledBy: handlerTaskType(task),
      isServed: true,
      isSingleInstance: false,
      ...more,
    });
  }

  const run = async (name: string, payload: unknown, job: Partial<JobContext> = {}): Promise<unknown> =>
    registry.get(name)!.run(payload, aJobContext({ taskType: name, ...job }));

  it('runs under the name of the definition for functions, classes and objects [J6]', async () => {
    define(
      'a',
      sourceForSchedule('a', (payload: unknown) => ['function', payload]),
    );
    define('b', sourceForSchedule('b', Report));
    define('c', sourceForSchedule('c', { handle: (payload: unknown) => ['object', payload] }));
    assert.deepEqual(await run('a', 1), ['function', 1]);
    assert.deepEqual(await run('b', 2), ['static', 2]);
    assert.deepEqual(await run('c', 3), ['object', 3]);
  });

  it('is rejected when it is not a handler [J6]', () => {
    for (const bad of [null, 5, {}, ['x'], class Empty {}])
      assert.throws(() => registerHandler(registry, 'a', sourceForSchedule('a', bad), NO_VARIABLES), {
        code: 'HANDLER_INVALID',
      });
    for (const bad of [{}, ['x'], { handle: 5 }, class Empty {}, class {}])
      assert.throws(() => registerHandler(registry, 'a', sourceForDefine(bad, null).task, NO_VARIABLES), {
        code: 'HANDLER_INVALID',
      });
    assert.deepEqual(registry.taskTypes, []);
  });

  it('is registered only when the definition contains it [J6]', () => {
    registry.register('sendEmail', () => 1);
    registerHandler(registry, 'sendEmail', sourceForSchedule('sendEmail', undefined), NO_VARIABLES);
    registerHandler(registry, 'nightly', sourceForSchedule('nightly', 'sendEmail'), NO_VARIABLES);
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('can be a task type, which runs with the job of the definition [J6]', async () => {
    registry.register('sendEmail', (payload: unknown, job: JobContext) => [payload, job.taskType, job.id]);
    define('nightly', sourceForSchedule('nightly', 'sendEmail'));
    assert.deepEqual(await run('nightly', { to: 'ada' }, { id: 'x' }), [{ to: 'ada' }, 'nightly', 'x']);
    assert.deepEqual(registry.taskTypes, ['sendEmail', 'nightly']);
  });

  it('can be registered later, and no jobs are claimed until then [J6]', async () => {
    define('nightly', sourceForSchedule('nightly', 'sendEmail'));
    assert.deepEqual([registry.get('nightly'), registry.taskTypes], [undefined, []]);
    registry.register('sendEmail', (payload: unknown) => ['sent', payload]);
    assert.deepEqual(await run('nightly', 1), ['sent', 1]);
    assert.deepEqual(registry.taskTypes, ['sendEmail', 'nightly']);
  });

  it('is not registered twice under its own name [J6]', () => {
    registry.register('sendEmail', () => 1);
    define('sendEmail', sourceForSchedule('sendEmail', 'sendEmail'));
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('does not serve a definition of another environment [D8]', () => {
    registry.register('sendEmail', () => 1);
    registry.register('report', () => 2);
    define('nightly', sourceForSchedule('nightly', 'sendEmail'), { isServed: false });
    define('report', sourceForSchedule('report', undefined), { isServed: false });
    assert.deepEqual(registry.taskTypes, ['sendEmail']);
  });

  it('has the options of its registration [J6]', () => {
    const options = {
      timeout: '2m',
      retries: { max: 7 },
      lease: '30s',
      schema: z.object({ to: z.string() }),
    };
    registry.register('sendEmail', () => 1, options);
    define('nightly', sourceForSchedule('nightly', 'sendEmail'));
    const { timeout, retries, lease, schema } = registry.get('nightly')!.options;
    assert.deepEqual([timeout, retries, lease], [120_000, { max: 7 }, 30_000]);
    assert.equal(schema, options.schema);
  });

  it('also has the settings of the definition, which the task type itself does not have [J6] [J12]', () => {
    const defaults = {
      payload: { n: 1 },
      queue: 'mails',
      priority: 7,
      maxRunningTime: 60_000,
      expiresIn: null,
    };
    const hooks = { when: [() => true], skip: [], before: [], onSuccess: [], onError: [], after: [] };
    registry.register('sendEmail', () => 1, { timeout: '2m', lease: '30s' });
    define('nightly', sourceForSchedule('nightly', 'sendEmail'), {
      options: { timeout: 5000 },
      hooks,
      defaults,
    });
    const nightly = registry.get('nightly')!;
    assert.deepEqual(nightly.options, { timeout: 5000, lease: 30_000 });
    assert.deepEqual([nightly.hooks, registry.defaultsOf('nightly')], [hooks, defaults]);
    const sendEmail = registry.get('sendEmail')!;
    assert.deepEqual(sendEmail.options, { timeout: 120_000, lease: 30_000 });
    assert.deepEqual([sendEmail.hooks, registry.defaultsOf('sendEmail')], [undefined, undefined]);
  });

  it('is reported as missing when it is not registered, with a suggestion [J6]', () => {
    registry.register('sendEmail', () => 1);
    const misspelled = sourceForSchedule('nightly', 'sendEmial');
    define('nightly', misspelled);
    const error = findMissingHandler(registry, 'nightly', misspelled);
    assert.equal(error?.code, 'HANDLER_INVALID');
    assert.match(
      error.message,
      /^schedule 'nightly' has no handler: .*'sendEmial' \(did you mean 'sendEmail'\?\)/,
    );
    const own = sourceForSchedule('report', undefined);
    define('report', own);
    assert.match(
      findMissingHandler(registry, 'report', own)?.message ?? '',
      /^schedule 'report' has no handler/,
    );
  });

  it('is reported as missing when its command is not registered, with a suggestion [D2]', () => {
    registry.register('command:app:report', () => 1);
    const { task } = sourceForDefine('command', 'app:reprot');
    define('nightly', task);
    const error = findMissingHandler(registry, 'nightly', task);
    assert.equal(error?.code, 'COMMAND_UNKNOWN');
    assert.match(
      error.message,
      /^schedule 'nightly' runs the command 'app:reprot', which is not registered: use registerCommand\(\) \(did you mean 'app:report'\?\)/,
    );
  });

  it('is not reported as missing when it exists [J6] [D2]', () => {
    registry.register('sendEmail', () => 1);
    registry.register('command:app:report', () => 2);
    const tasks: [string, HandlerSource][] = [
      ['sendEmail', sourceForSchedule('sendEmail', undefined)],
      ['a', sourceForSchedule('a', () => 1)],
      ['b', sourceForSchedule('b', 'sendEmail')],
      ['c', sourceForDefine('command', 'app:report').task],
      ['d', sourceForDefine('closure', () => 1).task],
      ['e', sourceForDefine('shell', ['ls']).task],
    ];
    for (const [name, task] of tasks) {
      define(name, task);
      assert.equal(findMissingHandler(registry, name, task), undefined);
    }
  });

  it('runs a command with its arguments [D2]', async () => {
    registry.register('command:app:report', (args: unknown) => ['report', args]);
    define('nightly', sourceForDefine('command', 'app:report').task);
    assert.deepEqual(await run('nightly', { month: 5 }), ['report', { month: 5 }]);
  });

  it('runs the shell command of the code, whatever the payload [D2]', async () => {
    define('version', sourceForDefine('shell', [process.execPath, '--version']).task);
    const result = await run('version', [process.execPath, '-e', 'console.log("other")']);
    assert.deepEqual(result, { exitCode: 0, stdout: `${process.version}\n`, stderr: '', cut: false });
  });

  it('runs a closure under the name of the definition [D2]', async () => {
    define('tidy', sourceForDefine('closure', (payload: unknown) => ['closure', payload]).task);
    assert.deepEqual(await run('tidy', 1), ['closure', 1]);
  });

  it('can be the same for two definitions [J6]', () => {
    const task = sourceForSchedule('a', () => 1);
    registerHandler(registry, 'a', task, NO_VARIABLES);
    registerHandler(registry, 'a', task, NO_VARIABLES);
    assert.deepEqual(registry.taskTypes, ['a']);
  });
});

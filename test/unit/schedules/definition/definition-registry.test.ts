import assert from 'node:assert/strict';
import { isForEnvironment } from '../../../../src/schedules/definition/definition-registry.js';
import { nothing, useDefinitions } from '../../../support/definition-registry.js';

describe('DefinitionRegistry', () => {
  const setup = useDefinitions();
  const { schedule, define, names, runnable } = setup;

  describe('names', () => {
    it('can be set first or later, and the last one counts [D3] [J21]', () => {
      schedule('first', nothing);
      define(() => 1, null)
        .daily()
        .named('second');
      schedule('draft', nothing).named('third');
      assert.deepEqual(names(), ['first', 'second', 'third']);
    });

    it('are free again after a definition gets another one [D3] [J21]', () => {
      schedule('draft', nothing).named('final');
      schedule('draft', () => 2);
      assert.deepEqual(names(), ['final', 'draft']);
    });

    it('are derived from the handler and a hash of the payload by default [D3]', () => {
      define('url', 'https://example.com/ping');
      define(
        function tidyUp() {
          return 1;
        },
        { deep: true },
      );
      define(
        class Report {
          handle(): void {}
        },
        undefined,
      );
      setup.registry.register('url', () => 1);
      const [url, tidy, report] = names();
      assert.match(url!, /^url-[0-9a-f]{16}$/);
      assert.match(tidy!, /^tidyUp-[0-9a-f]{16}$/);
      assert.match(report!, /^Report-[0-9a-f]{16}$/);
    });

    it('are the same in every process, whatever the order of the keys [D3]', () => {
      const nameOf = (payload: unknown): string => {
        setup.open();
        setup.registry.register('url', nothing);
        define('url', payload);
        return setup.definitions.all()[0]!.name;
      };
      const name = nameOf({ url: 'https://a', method: 'GET' });
      assert.equal(nameOf({ method: 'GET', url: 'https://a' }), name);
      assert.notEqual(nameOf({ method: 'PUT', url: 'https://a' }), name);
    });

    it('differ for two commands [D3]', () => {
      setup.registry.register('command:app:report', nothing);
      setup.registry.register('command:app:purge', () => 1);
      define('command', 'app:report').daily();
      define('command', 'app:purge').daily();
      assert.equal(new Set(names()).size, 2);
    });

    it('depend on the arguments of a command [D3]', () => {
      setup.registry.register('command:app:report', nothing);
      define('command', { command: 'app:report', args: { month: 1 } });
      define('command', { command: 'app:report', args: { month: 2 } });
      assert.equal(new Set(names()).size, 2);
    });

    it('differ for two shell commands [D3]', () => {
      define('shell', ['ls', '-la']);
      define('shell', ['ls', '-l']);
      for (const name of names()) assert.match(name, /^shell-[0-9a-f]{16}$/);
    });

    it('of unnamed closures are derived from their code [D3]', () => {
      define('closure', () => 'one');
      define('closure', () => 'two');
      const [one, two] = names();
      assert.match(one!, /^closure-[0-9a-f]{16}$/);
      assert.notEqual(one, two);
      assert.deepEqual(
        setup.definitions.all().map(({ isUnnamedClosure }) => isUnnamedClosure),
        [true, true],
      );
    });

    it('of unnamed functions are derived from their code and payload [D3]', () => {
      define(() => 'one', 1);
      define(() => 'two', 1);
      define(() => 'one', 2);
      assert.equal(new Set(names()).size, 3);
      for (const { name, task, isUnnamedClosure } of setup.definitions.all()) {
        assert.match(name, /^closure-[0-9a-f]{16}$/);
        assert.deepEqual([task.kind, isUnnamedClosure], ['closure', true]);
      }
    });

    it('must be unique, which is checked at the call that sets them [D3]', () => {
      schedule('report', nothing);
      const taken = { code: 'SCHEDULE_EXISTS', message: /^there is already a schedule named 'report'/ };
      assert.throws(() => schedule('report', nothing), taken);
      assert.throws(() => define(nothing, null).named('report'), taken);
    });

    it('that are rejected leave no definition behind [D3]', () => {
      schedule('report', nothing);
      assert.throws(() => schedule('report', nothing));
      assert.throws(() => schedule('a@b', nothing));
      assert.deepEqual(names(), ['report']);
    });

    it('are required for two definitions with the same code and payload [D3]', () => {
      define('event', 'tick').everyMinute();
      define('event', 'tick').hourly();
      setup.registry.register('event', nothing);
      assert.throws(names, {
        code: 'SCHEDULE_EXISTS',
        message: /^there is already a schedule named 'event-[0-9a-f]+'/,
      });
    });

    it('must be strings without reserved characters [D3]', () => {
      for (const name of [
        '',
        'a@b',
        'a+b',
        'a=b',
        'a\0b',
        'x'.repeat(201),
        null,
        5,
        { $ne: null },
        undefined,
      ]) {
        assert.throws(() => schedule(name as never, nothing), {
          code: 'INVALID_SCHEDULE',
          message: /^schedule\(\): the name of a schedule must /,
        });
      }
    });

    it('may be words like constructor or __proto__ [D3]', () => {
      for (const name of ['constructor', '__proto__', 'a/b:c d', 'ünï', 'toString'])
        schedule(name, () => name);
      assert.deepEqual(names(), ['constructor', '__proto__', 'a/b:c d', 'ünï', 'toString']);
    });
  });

  describe('environments', () => {
    it('restrict nothing when there are none; otherwise one of them must be the current one [D8]', () => {
      assert.equal(isForEnvironment([], 'test'), true);
      assert.equal(isForEnvironment(['test'], 'test'), true);
      assert.equal(isForEnvironment(['production', 'test'], 'test'), true);
      assert.equal(isForEnvironment(['production'], 'test'), false);
      assert.equal(isForEnvironment(['Test'], 'test'), false);
    });

    it('other than the current one leave a definition without a handler here [D8]', () => {
      schedule('here', nothing).environments('test', 'staging');
      schedule('elsewhere', () => 1).environments(['production']);
      schedule('everywhere', () => 2).environments();
      assert.deepEqual(names(), ['here', 'elsewhere', 'everywhere']);
      assert.deepEqual(
        setup.definitions.forThisEnvironment().map(({ name }) => name),
        ['here', 'everywhere'],
      );
      assert.deepEqual(setup.registry.taskTypes, ['here', 'everywhere']);
    });

    it('are those of the last call [D8]', () => {
      schedule('report', nothing).environments('production').environments('test');
      assert.deepEqual(setup.definitions.forThisEnvironment().length, 1);
    });

    it('do not restrict the defaults of a dispatch by name [D8] [J6]', () => {
      schedule('report', nothing).args({ n: 1 }).queue('mails').priority(7).environments('production');
      setup.definitions.all();
      const { payload, queue, priority } = setup.registry.defaultsOf('report') ?? {};
      assert.deepEqual({ payload, queue, priority }, { payload: { n: 1 }, queue: 'mails', priority: 7 });
    });

    it('allow a handler that only the other environment has [D8]', () => {
      schedule('report', undefined).environments('production').daily();
      schedule('nightly', 'sendEmail').environments('production').daily();
      assert.deepEqual(runnable(), ['report', 'nightly']);
      setup.definitions.assertValidForWorker();
      assert.equal(setup.definitions.all().length, 2);
      assert.deepEqual(setup.definitions.forThisEnvironment(), []);
    });
  });

  describe('for a worker', () => {
    it('rejects an unnamed closure, because other workers cannot find its code [D2]', () => {
      define('closure', nothing).daily();
      assert.deepEqual(runnable(), names(), 'it can run inline');
      assert.throws(() => setup.definitions.assertValidForWorker(), {
        code: 'INVALID_SCHEDULE',
        message:
          /^the unnamed closure 'closure-[0-9a-f]+' can only run inline, in a pass: name it with named\(\)/,
      });
    });

    it('rejects a function without a name [D2]', () => {
      define(() => 1, { deep: true }).daily();
      assert.throws(() => setup.definitions.assertValidForWorker(), {
        code: 'INVALID_SCHEDULE',
        message: /^the unnamed closure 'closure-[0-9a-f]+' can only run inline/,
      });
    });

    it('accepts a named closure [D2]', () => {
      define('closure', nothing).named('housekeeping').hourly();
      setup.definitions.assertValidForWorker();
      assert.deepEqual(
        setup.definitions.all().map(({ name, isUnnamedClosure }) => [name, isUnnamedClosure]),
        [['housekeeping', false]],
      );
      define(() => 1, null).named('tidy');
      setup.definitions.assertValidForWorker();
      assert.equal(setup.definitions.all().length, 2);
    });

    it('rejects an unnamed closure with a queue, in any order of calls [D2]', () => {
      define('closure', nothing).daily().queue('mails');
      assert.throws(names, { code: 'INVALID_SCHEDULE', message: /^an unnamed closure cannot be queued/ });
      setup.open();
      define('closure', nothing).queue('mails').named('tidy');
      assert.deepEqual(names(), ['tidy']);
    });
  });

  describe('while the worker runs', () => {
    let rejected: [string, string][] = [];
    const validate = (): string[] => {
      const result = setup.definitions.validate();
      rejected = result.rejected.map(({ name, error }) => [name, error.message]);
      return result.valid.map(({ name }) => name);
    };

    it('accepts valid new definitions and leaves out and reports invalid ones [J21]', () => {
      schedule('good', nothing).daily();
      schedule('never', () => 1).cron('0 0 31 2 *');
      schedule('unhandled', undefined).daily();
      assert.deepEqual(validate(), ['good']);
      assert.deepEqual(
        rejected.map(([name]) => name),
        ['never', 'unhandled'],
      );
      assert.match(rejected[0]![1], /^schedule 'never' never runs/);
      assert.match(rejected[1]![1], /^schedule 'unhandled' has no handler/);
    });

    it('drops an invalid definition and reports it once [J21]', () => {
      schedule('never', nothing).cron('0 0 31 2 *');
      schedule('good', () => 1).daily();
      assert.deepEqual(validate(), ['good']);
      assert.equal(rejected.length, 1);
      assert.deepEqual(validate(), ['good']);
      assert.deepEqual(rejected, []);
      assert.deepEqual(names(), ['good']);
    });

    it('frees the name of an invalid definition, so that it can be corrected [J21]', () => {
      schedule('report', nothing).cron('0 0 31 2 *');
      assert.deepEqual(validate(), []);
      schedule('report', nothing).daily();
      assert.deepEqual(validate(), ['report']);
      assert.deepEqual(rejected, []);
    });

    it('leaves out a definition without a handler until it has one [J21]', () => {
      schedule('report', undefined).daily();
      schedule('nightly', 'sendEmail').daily();
      define('command', 'app:report').named('monthly').daily();
      assert.deepEqual(validate(), []);
      const missing = ['report', 'nightly', 'monthly'];
      assert.deepEqual(
        rejected.map(([name]) => name),
        missing,
      );
      assert.deepEqual(names(), missing, 'they are still defined');
      assert.throws(() => schedule('report', nothing), { code: 'SCHEDULE_EXISTS' });
      setup.registry.register('sendEmail', nothing);
      assert.deepEqual(validate(), ['nightly']);
      setup.registry.register('report', () => 1);
      setup.registry.register('command:app:report', () => 2);
      assert.deepEqual(validate(), missing);
      assert.deepEqual(rejected, []);
    });

    it('accepts a definition that runs one defined after it [J21]', () => {
      schedule('nightly', 'report').daily();
      schedule('report', nothing);
      assert.deepEqual(validate(), ['nightly', 'report']);
      assert.deepEqual(rejected, []);
    });

    it('leaves out definitions for other environments [D8]', () => {
      schedule('elsewhere', nothing).environments('production').daily();
      schedule('without', undefined).environments('production').daily();
      assert.deepEqual(validate(), []);
      assert.deepEqual(rejected, []);
    });

    it('rejects an unnamed closure [D2]', () => {
      define('closure', nothing).daily();
      assert.deepEqual(validate(), []);
      assert.match(rejected[0]?.[1] ?? 'nothing was rejected', /unnamed closure/);
    });
  });

  describe('freeze()', () => {
    it('freezes only the definition of that name [J6]', () => {
      const one = schedule('one', nothing);
      const other = schedule('other', () => 1);
      setup.definitions.freeze('one');
      assert.throws(() => one.daily(), { code: 'SCHEDULE_FROZEN' });
      other.daily();
    });

    it('accepts a name that no definition has [J6]', () => {
      for (const name of ['unknown', undefined, null, { $ne: 1 }, 5])
        setup.definitions.freeze(name as string);
    });
  });

  describe('dispatch', () => {
    it('through the builder uses its name and settings [J6] [J7]', async () => {
      const builder = schedule<unknown>('report', nothing).args({ n: 1 });
      await builder.dispatch();
      await builder.dispatch({ n: 2 });
      await builder.delay('10s').dispatch();
      await builder.delay('10s').args({ n: 3 }).dispatch();
      await builder.at('2030-01-01').dispatch();
      assert.deepEqual(setup.dispatched, [
        { name: 'report', payload: undefined, options: {} },
        { name: 'report', payload: { n: 2 }, options: {} },
        { name: 'report', payload: undefined, options: { delay: '10s' } },
        { name: 'report', payload: { n: 3 }, options: { delay: '10s' } },
        { name: 'report', payload: undefined, options: { at: '2030-01-01' } },
      ]);
    });

    it('with a draft can be repeated, and each call returns a new draft [J7]', async () => {
      const draft = schedule<unknown>('report', nothing).delay('10s');
      const one = draft.args(1);
      const two = draft.args(2);
      await Promise.all([one.dispatch(), two.dispatch(), draft.dispatch(), one.dispatch()]);
      assert.deepEqual(
        setup.dispatched.map(({ payload }) => payload),
        [1, 2, undefined, 1],
      );
    });

    it('of a draft is not started by awaiting the draft [J7]', async () => {
      const draft = schedule('report', nothing).delay('10s');
      assert.equal('then' in draft, false);
      assert.equal(await Promise.resolve(draft), draft);
    });
  });
});

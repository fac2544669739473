import assert from 'node:assert/strict';
import { Draft } from '../../../src/dispatch/draft.js';
import type { JobHandle } from '../../../src/dispatch/job-handle.js';
import type { FieldSchedule } from '../../../src/domain/field-schedule.js';
import {
  buildDefinition,
  type Definition,
  type DefinitionContext,
} from '../../../src/schedules/definition.js';
import { Definitions, isMeantFor, type DefinitionsParts } from '../../../src/schedules/definitions.js';
import { HandlerRegistry } from '../../../src/worker/handler-registry.js';

interface Dispatched {
  name: unknown;
  payload: unknown;
  options: unknown;
}

const nothing = (): void => undefined;

describe('Definitions', () => {
  let registry: HandlerRegistry;
  let dispatched: Dispatched[];
  let definitions: Definitions;

  function open(options: Partial<DefinitionsParts['options']> = {}): Definitions {
    registry = new HandlerRegistry();
    dispatched = [];
    const dispatch = (name: unknown, payload: unknown, more: unknown): Promise<JobHandle> => {
      dispatched.push({ name, payload, options: more });
      return Promise.resolve({} as JobHandle);
    };
    return new Definitions({
      registry,
      options: {
        ...{ timezone: 'UTC', symbols: {}, environment: 'test', maxPayloadBytes: 1024, clock: undefined },
        ...options,
      },
      draft: () => new Draft<string>(dispatch),
      dispatch,
    });
  }

  beforeEach(() => {
    definitions = open();
  });

  const names = (): string[] => definitions.all().map(({ name }) => name);
  const runnable = (): string[] => definitions.runnable().map(({ name }) => name);

  describe('names', () => {
    it('D3 J21 come first or later, and the last one counts', () => {
      definitions.schedule('first', nothing);
      definitions
        .define(() => 1, null)
        .daily()
        .named('second');
      definitions.schedule('draft', nothing).named('third');
      assert.deepEqual(names(), ['first', 'second', 'third']);
    });

    it('D3 J21 a name that was given up is free again', () => {
      definitions.schedule('draft', nothing).named('final');
      definitions.schedule('draft', () => 2);
      assert.deepEqual(names(), ['final', 'draft']);
    });

    it('D3 without one, it is made of the handler and a hash of the payload', () => {
      definitions.define('url', 'https://example.com/ping');
      definitions.define(
        function tidyUp() {
          return 1;
        },
        { deep: true },
      );
      definitions.define(
        class Report {
          handle(): void {}
        },
        undefined,
      );
      registry.register('url', () => 1);
      const [url, tidy, report] = names();
      assert.match(url!, /^url-[0-9a-f]{16}$/);
      assert.match(tidy!, /^tidyUp-[0-9a-f]{16}$/);
      assert.match(report!, /^Report-[0-9a-f]{16}$/);
    });

    it('D3 the same in every process, whatever the order of the keys', () => {
      const nameOf = (payload: unknown): string => {
        const elsewhere = open();
        registry.register('url', nothing);
        elsewhere.define('url', payload);
        return elsewhere.all()[0]!.name;
      };
      const name = nameOf({ url: 'https://a', method: 'GET' });
      assert.equal(nameOf({ method: 'GET', url: 'https://a' }), name);
      assert.notEqual(nameOf({ method: 'PUT', url: 'https://a' }), name);
    });

    it('D3 two commands are two definitions', () => {
      registry.register('command:app:report', nothing);
      registry.register('command:app:purge', () => 1);
      definitions.define('command', 'app:report').daily();
      definitions.define('command', 'app:purge').daily();
      assert.equal(new Set(names()).size, 2);
    });

    it('D3 the name of a command follows its arguments too', () => {
      registry.register('command:app:report', nothing);
      definitions.define('command', { command: 'app:report', args: { month: 1 } });
      definitions.define('command', { command: 'app:report', args: { month: 2 } });
      assert.equal(new Set(names()).size, 2);
    });

    it('D3 two shell commands are two definitions', () => {
      definitions.define('shell', ['ls', '-la']);
      definitions.define('shell', ['ls', '-l']);
      for (const name of names()) assert.match(name, /^shell-[0-9a-f]{16}$/);
    });

    it('D3 a closure without one is named by its code', () => {
      definitions.define('closure', () => 'one');
      definitions.define('closure', () => 'two');
      const [one, two] = names();
      assert.match(one!, /^closure-[0-9a-f]{16}$/);
      assert.notEqual(one, two);
      assert.deepEqual(
        definitions.all().map(({ isUnnamedClosure }) => isUnnamedClosure),
        [true, true],
      );
    });

    it('D3 so is a function without one, and by its payload', () => {
      definitions.define(() => 'one', 1);
      definitions.define(() => 'two', 1);
      definitions.define(() => 'one', 2);
      assert.equal(new Set(names()).size, 3);
      for (const { name, task, isUnnamedClosure } of definitions.all()) {
        assert.match(name, /^closure-[0-9a-f]{16}$/);
        assert.deepEqual([task.kind, isUnnamedClosure], ['closure', true]);
      }
    });

    it('D3 must be different, at the call that says them', () => {
      definitions.schedule('report', nothing);
      const taken = { code: 'SCHEDULE_EXISTS', message: /^there is a schedule 'report' already/ };
      assert.throws(() => definitions.schedule('report', nothing), taken);
      assert.throws(() => definitions.define(nothing, null).named('report'), taken);
    });

    it('D3 what is refused for its name is not there', () => {
      definitions.schedule('report', nothing);
      assert.throws(() => definitions.schedule('report', nothing));
      assert.throws(() => definitions.schedule('a@b', nothing));
      assert.deepEqual(names(), ['report']);
    });

    it('D3 two of the same code and payload need names', () => {
      definitions.define('event', 'tick').everyMinute();
      definitions.define('event', 'tick').hourly();
      registry.register('event', nothing);
      assert.throws(names, {
        code: 'SCHEDULE_EXISTS',
        message: /^there is a schedule 'event-[0-9a-f]+' already/,
      });
    });

    it('D3 must not contain reserved characters, nor be anything but text', () => {
      for (const name of [
        '',
        'a@b',
        'a!b',
        'a#b',
        'a\0b',
        'x'.repeat(201),
        null,
        5,
        { $ne: null },
        undefined,
      ]) {
        assert.throws(() => definitions.schedule(name as never, nothing), {
          code: 'INVALID_SCHEDULE',
          message: /^the name of a schedule must /,
        });
      }
    });

    it('D3 may be like constructor or __proto__', () => {
      for (const name of ['constructor', '__proto__', 'a/b:c d', 'ünï', 'toString'])
        definitions.schedule(name, () => name);
      assert.deepEqual(names(), ['constructor', '__proto__', 'a/b:c d', 'ünï', 'toString']);
    });
  });

  describe('once built', () => {
    it('D1 is the same whenever it is looked at', () => {
      definitions.schedule('report', nothing).daily();
      assert.equal(definitions.all()[0], definitions.all()[0]);
      assert.equal(definitions.inOrder()[0], definitions.all()[0]);
    });

    it('D1 nothing that was given out can change it', () => {
      const payload = { to: ['ada'] };
      definitions
        .schedule('report', nothing)
        .args(payload)
        .daily()
        .hours([9, 17])
        .except('12-25')
        .retries({ max: 3 })
        .environments('test')
        .dependsOn('report-0')
        .when(() => true);
      definitions.schedule('report-0', () => 0);
      const [definition] = definitions.all() as unknown as [Record<string, Record<string, unknown>>];
      const snapshot = (): unknown => {
        const [{ name, schedule, options, dependsOn, around }] = definitions.all() as [Definition];
        return structuredClone({ name, schedule, options, dependsOn, filters: around.when.length });
      };
      const before = snapshot();
      payload.to.push('eve');
      const meddle: (() => unknown)[] = [
        () => (definition['name'] = {}),
        () => (definition['schedule']!['priority'] = 0),
        () => ((definition['schedule']!['payload'] as typeof payload).to[0] = 'eve'),
        () => ((definition['schedule']!['retries'] as { max: number }).max = 99),
        () => ((definition['schedule']!['misfire'] as { cap: number }).cap = 99),
        () => (definition['schedule']!['environments'] as string[]).push('production'),
        () => ((definition['schedule']!['rule'] as { cron: string }).cron = '* * * * *'),
        () => (definition['schedule']!['rule'] as { only: { hour: number[] } }).only.hour.push(3),
        () => (definition['schedule']!['rule'] as { except: string[] }).except.push('12-26'),
        () => ((definition['options'] as { retries: { max: number } }).retries.max = 99),
        () => (definition['dependsOn'] as unknown as string[]).push('eve'),
        () => (definition['around']!['when'] as unknown[]).pop(),
      ];
      for (const one of meddle) {
        try {
          one();
        } catch (error) {
          assert.ok(error instanceof TypeError, String(error));
        }
        assert.deepEqual(snapshot(), before, String(one));
      }
    });

    it('D1 nor anything that was given in', () => {
      const fields: FieldSchedule = { minutes: 0, hours: 2 };
      const builder = definitions.schedule('report', nothing).fields(fields);
      const from = '2026-01-01T00:00:00Z';
      const [before] = builder.nextRuns(1, from);
      fields.hours = 5;
      assert.deepEqual(builder.nextRuns(1, from), [before]);
    });

    it('D1 equal definitions have equal hashes, different ones have not', () => {
      const hashOf = (build: (all: Definitions) => unknown): string => {
        const elsewhere = open();
        build(elsewhere);
        return elsewhere.all()[0]!.hash;
      };
      const daily = hashOf((all) => all.schedule('report', nothing).daily());
      assert.equal(
        hashOf((all) => all.schedule('report', () => 'other code').daily()),
        daily,
      );
      assert.equal(
        hashOf((all) => all.schedule('report', nothing).priority(100).daily()),
        daily,
      );
      assert.equal(
        hashOf((all) => all.schedule('report', nothing).daily().onError(nothing)),
        daily,
      );
      for (const build of [
        (all: Definitions) => all.schedule('report', nothing).hourly(),
        (all: Definitions) => all.schedule('report', nothing).daily().hours(9),
        (all: Definitions) => all.schedule('report', nothing).daily().priority(1),
        (all: Definitions) => all.schedule('report', nothing).daily().args(1),
        (all: Definitions) => all.schedule('report', nothing).daily().disable(),
        (all: Definitions) => all.schedule('report', nothing).daily().timezone('Asia/Tokyo'),
      ])
        assert.notEqual(hashOf(build), daily);
    });
  });

  describe('handlers', () => {
    it('J6 one that is registered under the same name, before or after', () => {
      registry.register('before', nothing);
      definitions.schedule('before', undefined);
      definitions.schedule('after', undefined);
      registry.register('after', () => 1);
      assert.deepEqual(runnable(), ['before', 'after']);
    });

    it('J6 none at all is an error, with a hint', () => {
      registry.register('sendReport', nothing);
      definitions.schedule('sendReprot', undefined);
      for (const use of [runnable, () => definitions.here(), () => definitions.forWorker()])
        assert.throws(use, {
          code: 'HANDLER_INVALID',
          message: /^schedule 'sendReprot' has no handler: .*did you mean 'sendReport'\?/,
        });
    });

    it('D2 a command that nobody registered is one too', () => {
      registry.register('command:app:report', nothing);
      definitions.define('command', 'app:reprot').named('nightly');
      for (const use of [runnable, () => definitions.here(), () => definitions.forWorker()])
        assert.throws(use, {
          code: 'COMMAND_UNKNOWN',
          message: /^schedule 'nightly' runs the command 'app:reprot'.*did you mean 'app:report'\?/,
        });
    });

    it('J6 to look at it, or to dispatch it from here, it needs none', () => {
      definitions.schedule('report', undefined).args({ n: 1 });
      definitions.schedule('nightly', 'sendEmail');
      definitions.freeze('report');
      assert.deepEqual(registry.defaultsOf('report')?.payload, { n: 1 });
      assert.deepEqual(names(), ['report', 'nightly']);
      assert.deepEqual(
        definitions.inOrder().map(({ name }) => name),
        ['report', 'nightly'],
      );
    });

    it('J6 one that comes later heals it', () => {
      definitions.schedule('report', undefined);
      assert.throws(runnable, { code: 'HANDLER_INVALID' });
      registry.register('report', nothing);
      assert.deepEqual(runnable(), ['report']);
    });

    it('J6 another one under the same name is an error', () => {
      registry.register('report', nothing);
      definitions.schedule('report', () => 1);
      assert.throws(names, { code: 'HANDLER_EXISTS', message: /'report'/ });
    });

    it('J6 a definition may run the task type of another, whichever comes first', () => {
      definitions.schedule('nightly', 'report').daily();
      definitions.schedule('report', nothing);
      definitions.schedule('weekly', 'report').weekly();
      assert.deepEqual(runnable(), ['nightly', 'report', 'weekly']);
      for (const name of ['nightly', 'weekly']) assert.equal(registry.get(name)?.run, nothing);
    });

    it('J6 J12 what it says is its own, the other keeps what that one says', () => {
      definitions.schedule('report', nothing).timeout('1m').args('all').when(true);
      definitions.schedule('nightly', 'report').timeout('2m').args('new');
      definitions.all();
      const [report, nightly] = [registry.get('report'), registry.get('nightly')];
      assert.deepEqual([report?.options, nightly?.options], [{ timeout: 60_000 }, { timeout: 120_000 }]);
      assert.deepEqual([report?.defaults?.payload, nightly?.defaults?.payload], ['all', 'new']);
      assert.deepEqual([report?.around?.when.length, nightly?.around?.when.length], [1, 0]);
    });

    it('D1 an object with a handle method', () => {
      definitions.define({ handle: nothing }, null).named('report');
      definitions.define({ handle: () => 1 }, { deep: true });
      const [report, unnamed] = runnable();
      assert.equal(report, 'report');
      assert.match(unnamed!, /^object-[0-9a-f]{16}$/);
      assert.deepEqual(registry.taskTypes, [report, unnamed]);
    });

    it('D1 an object without one is refused', () => {
      for (const bad of [{}, ['x'], { handle: 5 }]) {
        definitions = open();
        assert.throws(() => definitions.define(bad, null), {
          code: 'HANDLER_INVALID',
          message: /has handle\(payload, job\)/,
        });
      }
    });

    it('J12 what it says about running is what its task type has', () => {
      registry.register('report', nothing, { timeout: '1m', lease: '30s' });
      definitions.schedule('report', undefined).timeout('2m').retries({ max: 7 });
      definitions.all();
      assert.deepEqual(registry.get('report')?.options, {
        timeout: 120_000,
        lease: 30_000,
        retries: { max: 7 },
      });
    });

    it('J6 and the defaults of whoever dispatches it', () => {
      definitions.schedule('report', nothing).args({ n: 1 }).queue('mails').priority(7).maxRunningTime('1m');
      definitions.all();
      const expected = { payload: { n: 1 }, queue: 'mails', priority: 7, maxRunningTime: 60_000 };
      assert.deepEqual(registry.defaultsOf('report'), expected);
    });
  });

  describe('environments', () => {
    it('D8 none is no restriction, otherwise one of them must be this one', () => {
      assert.equal(isMeantFor([], 'test'), true);
      assert.equal(isMeantFor(['test'], 'test'), true);
      assert.equal(isMeantFor(['production', 'test'], 'test'), true);
      assert.equal(isMeantFor(['production'], 'test'), false);
      assert.equal(isMeantFor(['Test'], 'test'), false);
    });

    it('D8 one for elsewhere is a definition, and has no handler here', () => {
      definitions.schedule('here', nothing).environments('test', 'staging');
      definitions.schedule('elsewhere', () => 1).environments(['production']);
      definitions.schedule('everywhere', () => 2).environments();
      assert.deepEqual(names(), ['here', 'elsewhere', 'everywhere']);
      assert.deepEqual(
        definitions.here().map(({ name }) => name),
        ['here', 'everywhere'],
      );
      assert.deepEqual(registry.taskTypes, ['here', 'everywhere']);
    });

    it('D8 the last call counts', () => {
      definitions.schedule('report', nothing).environments('production').environments('test');
      assert.deepEqual(definitions.here().length, 1);
    });

    it('D8 J6 what a dispatch by its name leaves open is known everywhere', () => {
      definitions
        .schedule('report', nothing)
        .args({ n: 1 })
        .queue('mails')
        .priority(7)
        .environments('production');
      definitions.all();
      const { payload, queue, priority } = registry.defaultsOf('report') ?? {};
      assert.deepEqual({ payload, queue, priority }, { payload: { n: 1 }, queue: 'mails', priority: 7 });
    });

    it('D8 it may want a handler that only the other environment has', () => {
      definitions.schedule('report', undefined).environments('production').daily();
      definitions.schedule('nightly', 'sendEmail').environments('production').daily();
      assert.deepEqual(runnable(), ['report', 'nightly']);
      assert.equal(definitions.forWorker().length, 2);
      assert.deepEqual(definitions.here(), []);
    });
  });

  describe('for a worker', () => {
    it('D2 an unnamed closure is refused, because others would not find its code', () => {
      definitions.define('closure', nothing).daily();
      assert.deepEqual(runnable(), names(), 'it can run in place');
      assert.throws(() => definitions.forWorker(), {
        code: 'INVALID_SCHEDULE',
        message:
          /^the unnamed closure 'closure-[0-9a-f]+' can only run in place, in a one-pass run: give it a name with named\(\)/,
      });
    });

    it('D2 so is a function without a name', () => {
      definitions.define(() => 1, { deep: true }).daily();
      assert.throws(() => definitions.forWorker(), {
        code: 'INVALID_SCHEDULE',
        message: /^the unnamed closure 'closure-[0-9a-f]+' can only run in place/,
      });
    });

    it('D2 a named one is not', () => {
      definitions.define('closure', nothing).named('housekeeping').hourly();
      assert.deepEqual(
        definitions.forWorker().map(({ name, isUnnamedClosure }) => [name, isUnnamedClosure]),
        [['housekeeping', false]],
      );
      definitions.define(() => 1, null).named('tidy');
      assert.equal(definitions.forWorker().length, 2);
    });

    it('D2 an unnamed closure cannot be queued, in any order of calls', () => {
      const refused = { code: 'INVALID_SCHEDULE', message: /^an unnamed closure cannot be queued/ };
      definitions.define('closure', nothing).daily().queue('mails');
      assert.throws(names, refused);
      definitions = open();
      definitions.define('closure', nothing).queue('mails').named('tidy');
      assert.deepEqual(names(), ['tidy']);
    });
  });

  describe('that come while it works', () => {
    const refused: [string, string][] = [];
    const collect = (): string[] => {
      refused.length = 0;
      return definitions
        .collect((name, { message }) => refused.push([name, message]))
        .map(({ name }) => name);
    };

    it('J21 are taken when they are good, and left out and reported when not', () => {
      definitions.schedule('good', nothing).daily();
      definitions.schedule('never', () => 1).cron('0 0 31 2 *');
      definitions.schedule('nobody', undefined).daily();
      assert.deepEqual(collect(), ['good']);
      assert.deepEqual(
        refused.map(([name]) => name),
        ['never', 'nobody'],
      );
      assert.match(refused[0]![1], /^schedule 'never' never runs/);
      assert.match(refused[1]![1], /^schedule 'nobody' has no handler/);
    });

    it('J21 what is no good is dropped, and reported once', () => {
      definitions.schedule('never', nothing).cron('0 0 31 2 *');
      definitions.schedule('good', () => 1).daily();
      assert.deepEqual(collect(), ['good']);
      assert.equal(refused.length, 1);
      assert.deepEqual(collect(), ['good']);
      assert.deepEqual(refused, []);
      assert.deepEqual(names(), ['good']);
    });

    it('J21 its name is free again: it can be defined again, right', () => {
      definitions.schedule('report', nothing).cron('0 0 31 2 *');
      assert.deepEqual(collect(), []);
      definitions.schedule('report', nothing).daily();
      assert.deepEqual(collect(), ['report']);
      assert.deepEqual(refused, []);
    });

    it('J21 what has no handler is left out until it has one', () => {
      definitions.schedule('report', undefined).daily();
      definitions.schedule('nightly', 'sendEmail').daily();
      definitions.define('command', 'app:report').named('monthly').daily();
      assert.deepEqual(collect(), []);
      const missing = ['report', 'nightly', 'monthly'];
      assert.deepEqual(
        refused.map(([name]) => name),
        missing,
      );
      assert.deepEqual(names(), missing, 'they are still defined');
      assert.throws(() => definitions.schedule('report', nothing), { code: 'SCHEDULE_EXISTS' });
      registry.register('sendEmail', nothing);
      assert.deepEqual(collect(), ['nightly']);
      registry.register('report', () => 1);
      registry.register('command:app:report', () => 2);
      assert.deepEqual(collect(), missing);
      assert.deepEqual(refused, []);
    });

    it('J21 one that runs what is defined after it is no error', () => {
      definitions.schedule('nightly', 'report').daily();
      definitions.schedule('report', nothing);
      assert.deepEqual(collect(), ['nightly', 'report']);
      assert.deepEqual(refused, []);
    });

    it('D8 those for elsewhere are not among them', () => {
      definitions.schedule('elsewhere', nothing).environments('production').daily();
      definitions.schedule('without', undefined).environments('production').daily();
      assert.deepEqual(collect(), []);
      assert.deepEqual(refused, []);
    });

    it('D2 an unnamed closure is refused then too', () => {
      definitions.define('closure', nothing).daily();
      assert.deepEqual(collect(), []);
      assert.match(refused[0]?.[1] ?? 'nothing was refused', /unnamed closure/);
    });
  });

  describe('freeze', () => {
    it('J6 freezes the one of that name, and no other', () => {
      const one = definitions.schedule('one', nothing);
      const other = definitions.schedule('other', () => 1);
      definitions.freeze('one');
      assert.throws(() => one.daily(), { code: 'SCHEDULE_FROZEN' });
      other.daily();
    });

    it('J6 a name that no definition has is fine, whatever it is', () => {
      for (const name of ['nobody', undefined, null, { $ne: 1 }, 5]) definitions.freeze(name);
    });
  });

  describe('dispatch', () => {
    it('J6 J7 by the builder: under its name, with what was said', async () => {
      const builder = definitions.schedule<unknown>('report', nothing).args({ n: 1 });
      await builder.dispatch();
      await builder.dispatch({ n: 2 });
      await builder.delay('10s').dispatch();
      await builder.delay('10s').args({ n: 3 }).dispatch();
      await builder.at('2030-01-01').dispatch();
      assert.deepEqual(dispatched, [
        { name: 'report', payload: undefined, options: {} },
        { name: 'report', payload: { n: 2 }, options: {} },
        { name: 'report', payload: undefined, options: { delay: '10s' } },
        { name: 'report', payload: { n: 3 }, options: { delay: '10s' } },
        { name: 'report', payload: undefined, options: { at: '2030-01-01' } },
      ]);
    });

    it('J7 a draft may be used again, and each call makes a new one', async () => {
      const draft = definitions.schedule<unknown>('report', nothing).delay('10s');
      const one = draft.args(1);
      const two = draft.args(2);
      await Promise.all([one.dispatch(), two.dispatch(), draft.dispatch(), one.dispatch()]);
      assert.deepEqual(
        dispatched.map(({ payload }) => payload),
        [1, 2, undefined, 1],
      );
    });

    it('J7 a draft is no thenable', async () => {
      const draft = definitions.schedule('report', nothing).delay('10s');
      assert.equal('then' in draft, false);
      assert.equal(await Promise.resolve(draft), draft);
    });
  });
});

describe('buildDefinition', () => {
  const context: DefinitionContext = {
    timezone: 'UTC',
    symbols: new Map(),
    maxPayloadBytes: 1024,
    now: new Date('2026-01-01T10:51:00Z'),
  };
  const around = { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] };
  const said = {
    name: 'report',
    task: { kind: 'own', label: 'report' } as const,
    payload: undefined,
    options: {},
    loose: [],
    lease: undefined,
    dependsOn: [],
    around,
  };

  it('J6 fills in what nobody said', () => {
    const { name, schedule, dependsOn, options, isUnnamedClosure } = buildDefinition({ ...said }, context);
    assert.deepEqual(
      { name, dependsOn, options, isUnnamedClosure },
      {
        name: 'report',
        dependsOn: [],
        options: {},
        isUnnamedClosure: false,
      },
    );
    assert.deepEqual(schedule, {
      taskType: 'report',
      rule: null,
      payload: null,
      queue: null,
      priority: 100,
      retries: null,
      timeout: null,
      maxRunningTime: null,
      misfire: { policy: 'once', within: 86_400_000, cap: 100 },
      overlap: 'skip',
      jitter: 0,
      maxRuns: null,
      enabled: true,
      environments: [],
      userId: null,
    });
  });

  it('J20 takes a rule whose only match is years away', () => {
    const build = (cron: string): unknown =>
      buildDefinition({ ...said, options: { cron } }, context).schedule.rule;
    assert.deepEqual(build('0 0 29 2 *'), { cron: '0 0 29 2 *', timezone: 'UTC' });
    assert.throws(() => build('0 0 30 2 *'), { code: 'SCHEDULE_NEVER_RUNS' });
  });

  it('B10 takes one that is over: its jobs may still run', () => {
    const options = { cron: '0 9 * * *', endsAt: '2025-01-01' };
    assert.doesNotThrow(() => buildDefinition({ ...said, options }, context));
  });

  it('B10 does not judge an interval by the moment this process started', () => {
    // Stored at midnight, it runs at 0:00 and 8:00; a restart at 10:51 changes nothing about that.
    const options = { every: '8h', hours: [0, 8] };
    assert.doesNotThrow(() =>
      buildDefinition({ ...said, options }, { ...context, now: new Date('2026-01-01T00:00:00Z') }),
    );
    assert.doesNotThrow(() => buildDefinition({ ...said, options }, context));
  });
});

import assert from 'node:assert/strict';
import type { FieldSchedule } from '../../../../src/domain/calendar/field-schedule.js';
import {
  buildDefinition,
  type Definition,
  type DefinitionContext,
} from '../../../../src/schedules/definition/definition.js';
import { nothing, useDefinitions } from '../../../support/definition-registry.js';

describe('a definition', () => {
  const setup = useDefinitions();
  const { schedule, define, names, runnable } = setup;

  describe('that was built', () => {
    it('is the same whenever it is read [D1]', () => {
      schedule('report', nothing).daily();
      assert.equal(setup.definitions.all()[0], setup.definitions.all()[0]);
      assert.equal(setup.definitions.inOrder()[0], setup.definitions.all()[0]);
    });

    it('cannot be changed through values it returned [D1]', () => {
      const payload = { to: ['ada'] };
      schedule('report', nothing)
        .args(payload)
        .daily()
        .hours([9, 17])
        .except('12-25')
        .retries({ max: 3 })
        .environments('test')
        .dependsOn('report-0')
        .when(() => true);
      schedule('report-0', () => 0);
      const [definition] = setup.definitions.all() as unknown as [Record<string, Record<string, unknown>>];
      const snapshot = (): unknown => {
        const [{ name, schedule, options, dependsOn, hooks }] = setup.definitions.all() as [Definition];
        return structuredClone({ name, schedule, options, dependsOn, filters: hooks.when.length });
      };
      const before = snapshot();
      payload.to.push('eve');
      const mutations: (() => unknown)[] = [
        () => (definition['name'] = {}),
        () => (definition['schedule']!['priority'] = 0),
        () => ((definition['schedule']!['payload'] as typeof payload).to[0] = 'eve'),
        () => ((definition['schedule']!['retries'] as { max: number }).max = 99),
        () => ((definition['schedule']!['misfire'] as { cap: number }).cap = 99),
        () => (definition['schedule']!['environments'] as string[]).push('production'),
        () => ((definition['schedule']!['rule'] as { cron: string }).cron = '* * * * *'),
        () =>
          (definition['schedule']!['rule'] as { constraints: { hour: number[] } }).constraints.hour.push(3),
        () => (definition['schedule']!['rule'] as { except: string[] }).except.push('12-26'),
        () => ((definition['options'] as { retries: { max: number } }).retries.max = 99),
        () => (definition['dependsOn'] as unknown as string[]).push('eve'),
        () => (definition['hooks']!['when'] as unknown[]).pop(),
      ];
      for (const mutate of mutations) {
        try {
          mutate();
        } catch (error) {
          assert.ok(error instanceof TypeError, String(error));
        }
        assert.deepEqual(snapshot(), before, String(mutate));
      }
    });

    it('cannot be changed through values it received [D1]', () => {
      const fields: FieldSchedule = { minutes: 0, hours: 2 };
      const builder = schedule('report', nothing).fields(fields);
      const from = '2026-01-01T00:00:00Z';
      const [before] = builder.nextRuns(1, from);
      fields.hours = 5;
      assert.deepEqual(builder.nextRuns(1, from), [before]);
    });

    it('has the same hash as an equal definition, and a different one otherwise [D1]', () => {
      const hashOf = (build: () => unknown): string => {
        setup.open();
        build();
        return setup.definitions.all()[0]!.hash;
      };
      const daily = hashOf(() => schedule('report', nothing).daily());
      assert.equal(
        hashOf(() => schedule('report', () => 'other code').daily()),
        daily,
      );
      assert.equal(
        hashOf(() => schedule('report', nothing).priority(100).daily()),
        daily,
      );
      assert.equal(
        hashOf(() => schedule('report', nothing).daily().onError(nothing)),
        daily,
      );
      for (const build of [
        () => schedule('report', nothing).hourly(),
        () => schedule('report', nothing).daily().hours(9),
        () => schedule('report', nothing).daily().priority(1),
        () => schedule('report', nothing).daily().args(1),
        () => schedule('report', nothing).daily().disable(),
        () => schedule('report', nothing).daily().timezone('Asia/Tokyo'),
      ])
        assert.notEqual(hashOf(build), daily);
    });
  });

  describe('its handler', () => {
    const USES = [
      runnable,
      () => setup.definitions.forThisEnvironment(),
      () => setup.definitions.assertValidForWorker(),
    ];

    it('can be registered under the same name, before or after [J6]', () => {
      setup.registry.register('before', nothing);
      schedule('before', undefined);
      schedule('after', undefined);
      setup.registry.register('after', () => 1);
      assert.deepEqual(runnable(), ['before', 'after']);
    });

    it('is required, and the error suggests a similar name [J6]', () => {
      setup.registry.register('sendReport', nothing);
      schedule('sendReprot', undefined);
      for (const use of USES)
        assert.throws(use, {
          code: 'HANDLER_INVALID',
          message: /^schedule 'sendReprot' has no handler: .*did you mean 'sendReport'\?/,
        });
    });

    it('is required for a command, too [D2]', () => {
      setup.registry.register('command:app:report', nothing);
      define('command', 'app:reprot').named('nightly');
      for (const use of USES)
        assert.throws(use, {
          code: 'COMMAND_UNKNOWN',
          message: /^schedule 'nightly' runs the command 'app:reprot'.*did you mean 'app:report'\?/,
        });
    });

    it('is not needed to read the definition or to dispatch it [J6]', () => {
      schedule('report', undefined).args({ n: 1 });
      schedule('nightly', 'sendEmail');
      setup.definitions.freeze('report');
      assert.deepEqual(setup.registry.defaultsOf('report')?.payload, { n: 1 });
      assert.deepEqual(names(), ['report', 'nightly']);
      assert.deepEqual(
        setup.definitions.inOrder().map(({ name }) => name),
        ['report', 'nightly'],
      );
    });

    it('can be registered later [J6]', () => {
      schedule('report', undefined);
      assert.throws(runnable, { code: 'HANDLER_INVALID' });
      setup.registry.register('report', nothing);
      assert.deepEqual(runnable(), ['report']);
    });

    it('must not differ from another handler of the same name [J6]', () => {
      setup.registry.register('report', nothing);
      schedule('report', () => 1);
      assert.throws(names, { code: 'HANDLER_EXISTS', message: /'report'/ });
    });

    it('can be the task type of another definition, in any order [J6]', () => {
      schedule('nightly', 'report').daily();
      schedule('report', nothing);
      schedule('weekly', 'report').weekly();
      assert.deepEqual(runnable(), ['nightly', 'report', 'weekly']);
      for (const name of ['nightly', 'weekly']) assert.equal(setup.registry.get(name)?.run, nothing);
    });

    it('does not share its settings with the other definition [J6] [J12]', () => {
      schedule('report', nothing).timeout('1m').args('all').when(true);
      schedule('nightly', 'report').timeout('2m').args('new');
      setup.definitions.all();
      const [report, nightly] = [setup.registry.get('report'), setup.registry.get('nightly')];
      assert.deepEqual([report?.options, nightly?.options], [{ timeout: 60_000 }, { timeout: 120_000 }]);
      assert.deepEqual(
        ['report', 'nightly'].map((name) => setup.registry.defaultsOf(name)?.payload),
        ['all', 'new'],
      );
      assert.deepEqual([report?.hooks?.when.length, nightly?.hooks], [1, undefined]);
    });

    it('can be an object with a handle method [D1]', () => {
      define({ handle: nothing }, null).named('report');
      define({ handle: () => 1 }, { deep: true });
      const [report, unnamed] = runnable();
      assert.equal(report, 'report');
      assert.match(unnamed!, /^object-[0-9a-f]{16}$/);
      assert.deepEqual(setup.registry.taskTypes, [report, unnamed]);
    });

    it('must not be an object without a handle method [D1]', () => {
      for (const bad of [{}, ['x'], { handle: 5 }]) {
        setup.open();
        assert.throws(() => define(bad, null), {
          code: 'HANDLER_INVALID',
          message: /must have a method handle\(payload, job\)/,
        });
      }
    });

    it('gets the run settings of the definition [J12]', () => {
      setup.registry.register('report', nothing, { timeout: '1m', lease: '30s' });
      schedule('report', undefined).timeout('2m').retries({ max: 7 });
      setup.definitions.all();
      assert.deepEqual(setup.registry.get('report')?.options, {
        timeout: 120_000,
        lease: 30_000,
        retries: { max: 7 },
      });
    });

    it('gets the dispatch defaults of the definition [J6]', () => {
      schedule('report', nothing).args({ n: 1 }).queue('mails').priority(7).maxRunningTime('1m');
      setup.definitions.all();
      const expected = {
        payload: { n: 1 },
        queue: 'mails',
        priority: 7,
        maxRunningTime: 60_000,
        expiresIn: null,
      };
      assert.deepEqual(setup.registry.defaultsOf('report'), expected);
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
  const hooks = { when: [], skip: [], before: [], onSuccess: [], onError: [], after: [] };
  const input = {
    name: 'report',
    task: { kind: 'own', label: 'report' } as const,
    payload: undefined,
    options: {},
    overridable: [],
    singleInstance: false,
    lease: undefined,
    handlerRetries: undefined,
    dependsOn: [],
    hooks,
  };

  it('fills in the defaults [J6]', () => {
    const { name, schedule, dependsOn, options, isUnnamedClosure } = buildDefinition({ ...input }, context);
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
      expiresIn: null,
      misfire: { policy: 'once', within: 86_400_000, cap: 100 },
      overlap: 'skip',
      jitter: 0,
      singleInstance: false,
      maxRuns: null,
      enabled: true,
      environments: [],
      userId: null,
    });
  });

  it('accepts a rule whose only match is years away [J20]', () => {
    const build = (cron: string): unknown =>
      buildDefinition({ ...input, options: { cron } }, context).schedule.rule;
    assert.deepEqual(build('0 0 29 2 *'), { cron: '0 0 29 2 *', timezone: 'UTC' });
    assert.throws(() => build('0 0 30 2 *'), { code: 'SCHEDULE_NEVER_RUNS' });
  });

  it('accepts a rule that has ended, because its jobs may still run [B10]', () => {
    const options = { cron: '0 9 * * *', endsAt: '2025-01-01' };
    assert.doesNotThrow(() => buildDefinition({ ...input, options }, context));
  });

  it('does not check an interval against the start time of this process [B10]', () => {
    // Stored at midnight, it runs at 0:00 and 8:00; a restart at 10:51 changes nothing about that.
    const options = { every: '8h', hours: [0, 8] };
    assert.doesNotThrow(() =>
      buildDefinition({ ...input, options }, { ...context, now: new Date('2026-01-01T00:00:00Z') }),
    );
    assert.doesNotThrow(() => buildDefinition({ ...input, options }, context));
  });
});

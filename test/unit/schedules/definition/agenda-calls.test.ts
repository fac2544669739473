import assert from 'node:assert/strict';
import { Scheduler } from '../../../../src/index.js';

/** As JavaScript calls it. */
type Untyped = Record<'define' | 'schedule', (...args: unknown[]) => unknown>;

describe('calls that are written for Agenda', () => {
  const create = (): Untyped => new Scheduler({ uri: 'mongodb://unused/app' }) as unknown as Untyped;
  const date = new Date('2026-12-01T08:00:00Z');
  const handler = (): void => undefined;

  for (const args of [
    ['send email', handler],
    ['send email', handler, { concurrency: 5 }],
    ['send email', { concurrency: 5 }, handler],
  ]) {
    it(`define() with ${args.length} arguments: the error shows registerHandler()`, () => {
      assert.throws(() => create().define(...args), {
        code: 'INVALID_ARGUMENT',
        message: /In Chronos: scheduler\.registerHandler\('send email', /,
      });
    });
  }

  for (const [when, option] of [
    ['in 5 minutes', "{ delay: '5m' }"],
    ['In 20 Seconds', "{ delay: '20s' }"],
    ['in an hour', "{ delay: '1h' }"],
    ['2 days from now', "{ delay: '2d' }"],
    ['in 3 weeks', "{ delay: '3w' }"],
    ['in 2 months', '{ at: date }'],
    ['tomorrow at noon', '{ at: date }'],
    ['tomorrow', '{ at: date }'],
    ['next monday', '{ at: date }'],
    ['2026-12-01 08:00', '{ at: date }'],
    [date, '{ at: date }'],
  ] as const) {
    it(`schedule(${String(when)}, …): the error shows dispatch() with ${option}`, () => {
      for (const names of ['report', ['report', 'other']]) {
        assert.throws(
          () => create().schedule(when, names, { month: 1 }),
          ({ code, message }: { code?: string; message: string }) =>
            code === 'INVALID_ARGUMENT' &&
            message.endsWith(`In Chronos: scheduler.dispatch('report', payload, ${option})`),
        );
      }
    });
  }

  it('are not confused with calls for Chronos', () => {
    const scheduler = create();
    scheduler.define('closure', handler);
    scheduler.define('report', { month: 1 });
    scheduler.define(handler, { month: 1 });
    scheduler.schedule('in 5 minutes', handler);
    scheduler.schedule('tomorrow at noon');
    for (const name of ['tomorrow-report', 'nextweek', 'in-5-minutes', 'minutes', 'daily'])
      scheduler.schedule(name, 'report');
  });
});

import assert from 'node:assert/strict';
import { resolveSchedule, type ScheduleOptions } from '../../../src/config/schedule-options.js';
import { SYMBOLS } from '../../../src/config/symbols.js';
import { hashOf, type ScheduleDefinition, type ScheduleDocument } from '../../../src/domain/schedule.js';
import { changedSchedule, newSchedule, recountedFrom } from '../../../src/schedules/new-schedule.js';

const NOW = new Date('2026-01-01T00:00:00Z');
const LATER = new Date('2026-01-01T12:30:00Z');

function aDefinition(options: ScheduleOptions): ScheduleDefinition {
  const context = { timezone: 'UTC', symbols: new Map(Object.entries(SYMBOLS)) };
  return { ...resolveSchedule(options, context, 'test'), taskType: 'work', payload: null };
}

function stored(options: ScheduleOptions, fields: Partial<ScheduleDocument> = {}): ScheduleDocument {
  const definition = aDefinition(options);
  return { ...newSchedule('work', 'code', definition, hashOf(definition), NOW), ...fields };
}

/** What a schedule is after its definition changed. */
function change(before: ScheduleDocument, options: ScheduleOptions, now = LATER): ScheduleDocument {
  const definition = aDefinition(options);
  return { ...before, ...changedSchedule(before, definition, hashOf(definition), now) };
}

function at(text: string): Date {
  return new Date(`2026-${text}Z`);
}

describe('newSchedule', () => {
  it('C7 is due from now on, with nothing behind it', () => {
    const { decision, rule, ...fields } = stored({ cron: '0 9 * * *' });
    assert.deepEqual(rule, { cron: '0 9 * * *', timezone: 'UTC' });
    assert.match(decision ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual(fields, {
      _id: 'work',
      owner: 'code',
      taskType: 'work',
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
      hash: hashOf(aDefinition({ cron: '0 9 * * *' })),
      rev: 0,
      isActive: true,
      paused: null,
      disabledReason: null,
      anchor: NOW,
      nextRunAt: at('01-01T09:00:00'),
      lastRunAt: null,
      active: null,
      owed: [],
      runs: 0,
      createdAt: NOW,
      updatedAt: NOW,
    });
  });

  it('C7 the moment it is stored is not due any more', () => {
    assert.deepEqual(stored({ cron: '0 0 * * *' }).nextRunAt, at('01-02T00:00:00'));
  });

  it('J6 without a rule it is never due', () => {
    assert.equal(stored({}).nextRunAt, null);
  });

  it('B10 an interval counts from when it was stored, or from startsAt', () => {
    assert.deepEqual(stored({ every: '7m' }).nextRunAt, at('01-01T00:07:00'));
    assert.deepEqual(stored({ every: '7m', startsAt: at('01-01T00:00:01') }).nextRunAt, at('01-01T00:00:01'));
  });

  it('B10 one that is over is never due', () => {
    assert.equal(stored({ cron: '* * * * *', endsAt: NOW }).nextRunAt, null);
  });

  it('D7 one that is disabled is stored, and not active', () => {
    const { enabled, isActive, nextRunAt } = stored({ cron: '* * * * *', enabled: false });
    assert.deepEqual([enabled, isActive, nextRunAt], [false, false, at('01-01T00:01:00')]);
  });

  it('C7 no two have the same decision', () => {
    assert.notEqual(stored({}).decision, stored({}).decision);
  });
});

describe('changedSchedule', () => {
  const hourly = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T13:00:00') });

  it('F2 a changed rule counts from the change on', () => {
    const after = change(hourly, { cron: '15 * * * *' });
    assert.deepEqual([after.nextRunAt, after.owed, after.updatedAt], [at('01-01T13:15:00'), [], LATER]);
    assert.notEqual(after.hash, hourly.hash);
    assert.notEqual(after.decision, hourly.decision, 'decisions under way are void');
  });

  it('F2 what was due and not decided is recorded as skipped by the change', () => {
    const before = { ...hourly, nextRunAt: at('01-01T10:00:00') };
    const { nextRunAt, owed } = change(before, { cron: '15 * * * *' });
    assert.deepEqual(nextRunAt, at('01-01T13:15:00'));
    assert.deepEqual(owed, [
      {
        kind: 'skip',
        id: 'work@2026-01-01T10:00:00.000Z',
        at: at('01-01T10:00:00'),
        until: new Date(LATER.getTime() + 1),
        count: null,
        reason: 'changed',
        activeId: null,
        runningFor: null,
        since: LATER,
      },
    ]);
  });

  it('F2 a run that is decided stays owed', () => {
    const run = { kind: 'run', id: 'work@x', at: NOW, since: NOW } as const;
    assert.deepEqual(change({ ...hourly, owed: [run] }, { cron: '15 * * * *' }).owed, [run]);
  });

  it('C7 an unchanged rule goes on where it was, whatever else changes', () => {
    const before = { ...hourly, nextRunAt: at('01-01T10:00:00'), lastRunAt: at('01-01T09:00:00'), runs: 9 };
    const after = change(before, { cron: '0 * * * *', queue: 'mails', priority: 1, overlap: 'allow' });
    assert.deepEqual([after.nextRunAt, after.owed], [at('01-01T10:00:00'), []]);
    assert.deepEqual([after.queue, after.priority, after.overlap], ['mails', 1, 'allow']);
    assert.deepEqual([after.lastRunAt, after.runs], [at('01-01T09:00:00'), 9]);
    assert.deepEqual([after.anchor, after.createdAt], [NOW, NOW]);
  });

  it('C7 the order of the fields of a rule is no change', () => {
    const before = stored({ fields: { minutes: 0, hours: 2 } }, { nextRunAt: at('01-01T02:00:00') });
    assert.deepEqual(change(before, { fields: { hours: 2, minutes: 0 } }).nextRunAt, at('01-01T02:00:00'));
  });

  for (const [what, options] of [
    ['a constraint', { hours: 14 }],
    ['the time zone', { timezone: 'Asia/Kolkata' }],
    ['an exclusion', { except: ['2026-01-01'] }],
    ['an end', { endsAt: '2026-01-01T12:45:00Z' }],
  ] as const) {
    it(`F2 ${what} is part of the rule`, () => {
      const before = { ...hourly, nextRunAt: at('01-01T10:00:00') };
      const { nextRunAt, owed } = change(before, { cron: '0 * * * *', ...options });
      assert.ok(nextRunAt === null || nextRunAt > LATER);
      assert.equal(owed.length, 1);
    });
  }

  it('C7 never unpauses', () => {
    const paused = { at: NOW, by: 'ada', reason: 'holidays' };
    const after = change({ ...hourly, paused, isActive: false }, { cron: '15 * * * *' });
    assert.deepEqual([after.paused, after.isActive], [paused, false]);
  });

  it('F5 a new definition takes back why the old one was disabled', () => {
    const before = { ...hourly, isActive: false, disabledReason: 'its rule cannot be read' };
    const after = change(before, { cron: '15 * * * *' });
    assert.deepEqual([after.disabledReason, after.isActive], [null, true]);
  });

  it('D7 one that is enabled again goes on from now; what was due meanwhile is recorded', () => {
    const before = stored({ cron: '0 * * * *', enabled: false }, { nextRunAt: at('01-01T01:00:00') });
    const after = change(before, { cron: '0 * * * *' });
    assert.deepEqual([after.isActive, after.nextRunAt], [true, at('01-01T13:00:00')]);
    assert.deepEqual(
      after.owed.map((entry) => [entry.kind, entry.at]),
      [['skip', at('01-01T01:00:00')]],
    );
  });

  it('D7 one that is disabled stays where it is', () => {
    const after = change(hourly, { cron: '0 * * * *', enabled: false });
    assert.deepEqual([after.isActive, after.nextRunAt, after.owed], [false, hourly.nextRunAt, []]);
  });

  it('J6 a rule that is taken back leaves nothing due', () => {
    assert.equal(change(hourly, {}).nextRunAt, null);
  });

  it('B10 an interval that changes keeps to the instant it was first stored', () => {
    const before = stored({ every: '7m' });
    assert.deepEqual(change(before, { every: '1h' }).nextRunAt, at('01-01T13:00:00'));
  });

  describe('with maxRuns', () => {
    const over = stored({ cron: '0 * * * *', maxRuns: 3 }, { runs: 3, nextRunAt: null });

    it('B10 one that has had its runs stays over when its rule changes', () => {
      assert.equal(change(over, { cron: '15 * * * *', maxRuns: 3 }).nextRunAt, null);
    });

    it('B10 more runs let it go on', () => {
      assert.deepEqual(change(over, { cron: '0 * * * *', maxRuns: 5 }).nextRunAt, at('01-01T13:00:00'));
    });

    it('B10 no limit any more lets it go on', () => {
      assert.deepEqual(change(over, { cron: '0 * * * *' }).nextRunAt, at('01-01T13:00:00'));
    });
  });
});

describe('recountedFrom', () => {
  it('B8 F2 records why nothing ran meanwhile', () => {
    const before = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T10:00:00') });
    const { nextRunAt, owed } = recountedFrom(before, before, LATER, 'paused');
    assert.deepEqual(nextRunAt, at('01-01T13:00:00'));
    assert.deepEqual(
      owed.map((entry) => entry.kind === 'skip' && [entry.reason, entry.at, entry.until]),
      [['paused', at('01-01T10:00:00'), new Date(LATER.getTime() + 1)]],
    );
  });

  it('F2 an occurrence of this very moment is skipped, not due again', () => {
    const before = stored({ cron: '30 12 * * *' }, { nextRunAt: LATER });
    const { nextRunAt, owed } = recountedFrom(before, before, LATER, 'changed');
    assert.deepEqual([nextRunAt, owed.length], [at('01-02T12:30:00'), 1]);
  });

  it('F2 records nothing when nothing was due', () => {
    const before = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T13:00:00') });
    assert.deepEqual(recountedFrom(before, before, LATER, 'changed').owed, []);
  });
});

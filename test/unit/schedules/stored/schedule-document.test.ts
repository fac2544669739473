import assert from 'node:assert/strict';
import { SCHEDULE_SYMBOLS } from '../../../../src/config/rule-options.js';
import { resolveSchedule, type ScheduleOptions } from '../../../../src/config/schedule-options.js';
import {
  hashOf,
  type ScheduleDefinition,
  type ScheduleDocument,
} from '../../../../src/domain/schedule/schedule.js';
import {
  applyDefinition,
  newSchedule,
  restartFrom,
} from '../../../../src/schedules/stored/schedule-document.js';

const NOW = new Date('2026-01-01T00:00:00Z');
const LATER = new Date('2026-01-01T12:30:00Z');

function aDefinition(options: ScheduleOptions): ScheduleDefinition {
  const context = { timezone: 'UTC', symbols: new Map(Object.entries(SCHEDULE_SYMBOLS)) };
  return { ...resolveSchedule(options, context, 'test'), taskType: 'work', payload: null };
}

function stored(options: ScheduleOptions, fields: Partial<ScheduleDocument> = {}): ScheduleDocument {
  const definition = aDefinition(options);
  return { ...newSchedule('work', 'code', definition, hashOf(definition), NOW), ...fields };
}

/** The schedule after its definition changed. */
function change(before: ScheduleDocument, options: ScheduleOptions, now = LATER): ScheduleDocument {
  const definition = aDefinition(options);
  return { ...before, ...applyDefinition(before, definition, hashOf(definition), now) };
}

function at(text: string): Date {
  return new Date(`2026-${text}Z`);
}

describe('newSchedule', () => {
  it('has its first occurrence after now [C7]', () => {
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
      expiresIn: null,
      misfire: { policy: 'once', within: 86_400_000, cap: 100 },
      overlap: 'skip',
      singleInstance: false,
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
      pending: [],
      runs: 0,
      createdAt: NOW,
      updatedAt: NOW,
    });
  });

  it('does not include an occurrence at the moment it is stored [C7]', () => {
    assert.deepEqual(stored({ cron: '0 0 * * *' }).nextRunAt, at('01-02T00:00:00'));
  });

  it('is never due without a rule [J6]', () => {
    assert.equal(stored({}).nextRunAt, null);
  });

  it('counts an interval from when it was stored, or from startsAt [B10]', () => {
    assert.deepEqual(stored({ every: '7m' }).nextRunAt, at('01-01T00:07:00'));
    assert.deepEqual(stored({ every: '7m', startsAt: at('01-01T00:00:01') }).nextRunAt, at('01-01T00:00:01'));
  });

  it('is never due after endsAt [B10]', () => {
    assert.equal(stored({ cron: '* * * * *', endsAt: NOW }).nextRunAt, null);
  });

  it('is stored but not active if it is disabled [D7]', () => {
    const { enabled, isActive, nextRunAt } = stored({ cron: '* * * * *', enabled: false });
    assert.deepEqual([enabled, isActive, nextRunAt], [false, false, at('01-01T00:01:00')]);
  });

  it('has a unique decision id [C7]', () => {
    assert.notEqual(stored({}).decision, stored({}).decision);
  });
});

describe('applyDefinition', () => {
  const hourly = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T13:00:00') });

  it('counts a changed rule from the change on [F2]', () => {
    const after = change(hourly, { cron: '15 * * * *' });
    assert.deepEqual([after.nextRunAt, after.pending, after.updatedAt], [at('01-01T13:15:00'), [], LATER]);
    assert.notEqual(after.hash, hourly.hash);
    assert.notEqual(after.decision, hourly.decision, 'plans that are being stored become invalid');
  });

  it('records occurrences that were due and not planned yet as skipped because of the change [F2]', () => {
    const before = { ...hourly, nextRunAt: at('01-01T10:00:00') };
    const { nextRunAt, pending } = change(before, { cron: '15 * * * *' });
    assert.deepEqual(nextRunAt, at('01-01T13:15:00'));
    assert.deepEqual(pending, [
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

  it('keeps a pending run [F2]', () => {
    const run = { kind: 'run', id: 'work@x', at: NOW, since: NOW } as const;
    assert.deepEqual(change({ ...hourly, pending: [run] }, { cron: '15 * * * *' }).pending, [run]);
  });

  it('continues an unchanged rule where it was when other fields change [C7]', () => {
    const before = { ...hourly, nextRunAt: at('01-01T10:00:00'), lastRunAt: at('01-01T09:00:00'), runs: 9 };
    const after = change(before, { cron: '0 * * * *', queue: 'mails', priority: 1, overlap: 'allow' });
    assert.deepEqual([after.nextRunAt, after.pending], [at('01-01T10:00:00'), []]);
    assert.deepEqual([after.queue, after.priority, after.overlap], ['mails', 1, 'allow']);
    assert.deepEqual([after.lastRunAt, after.runs], [at('01-01T09:00:00'), 9]);
    assert.deepEqual([after.anchor, after.createdAt], [NOW, NOW]);
  });

  it('ignores the order of the fields of a rule [C7]', () => {
    const before = stored({ fields: { minutes: 0, hours: 2 } }, { nextRunAt: at('01-01T02:00:00') });
    assert.deepEqual(change(before, { fields: { hours: 2, minutes: 0 } }).nextRunAt, at('01-01T02:00:00'));
  });

  for (const [what, options] of [
    ['a constraint', { hours: 14 }],
    ['the time zone', { timezone: 'Asia/Kolkata' }],
    ['an exclusion', { except: ['2026-01-01'] }],
    ['an end', { endsAt: '2026-01-01T12:45:00Z' }],
  ] as const) {
    it(`treats ${what} as a part of the rule [F2]`, () => {
      const before = { ...hourly, nextRunAt: at('01-01T10:00:00') };
      const { nextRunAt, pending } = change(before, { cron: '0 * * * *', ...options });
      assert.ok(nextRunAt === null || nextRunAt > LATER);
      assert.equal(pending.length, 1);
    });
  }

  it('never unpauses [C7]', () => {
    const paused = { at: NOW, by: 'ada', reason: 'holidays' };
    const after = change({ ...hourly, paused, isActive: false }, { cron: '15 * * * *' });
    assert.deepEqual([after.paused, after.isActive], [paused, false]);
  });

  it('clears the reason why the old definition was disabled [F5]', () => {
    const before = { ...hourly, isActive: false, disabledReason: 'its rule cannot be read' };
    const after = change(before, { cron: '15 * * * *' });
    assert.deepEqual([after.disabledReason, after.isActive], [null, true]);
  });

  it('continues from now when it is enabled again, and records the skipped occurrences [D7]', () => {
    const before = stored({ cron: '0 * * * *', enabled: false }, { nextRunAt: at('01-01T01:00:00') });
    const after = change(before, { cron: '0 * * * *' });
    assert.deepEqual([after.isActive, after.nextRunAt], [true, at('01-01T13:00:00')]);
    assert.deepEqual(
      after.pending.map((entry) => [entry.kind, entry.at]),
      [['skip', at('01-01T01:00:00')]],
    );
  });

  it('keeps its next occurrence when it is disabled [D7]', () => {
    const after = change(hourly, { cron: '0 * * * *', enabled: false });
    assert.deepEqual([after.isActive, after.nextRunAt, after.pending], [false, hourly.nextRunAt, []]);
  });

  it('is never due after its rule is removed [J6]', () => {
    assert.equal(change(hourly, {}).nextRunAt, null);
  });

  it('counts a changed interval from the instant it was first stored [B10]', () => {
    const before = stored({ every: '7m' });
    assert.deepEqual(change(before, { every: '1h' }).nextRunAt, at('01-01T13:00:00'));
  });

  describe('with maxRuns', () => {
    const ended = stored({ cron: '0 * * * *', maxRuns: 3 }, { runs: 3, nextRunAt: null });

    it('stays ended after its last run when its rule changes [B10]', () => {
      assert.equal(change(ended, { cron: '15 * * * *', maxRuns: 3 }).nextRunAt, null);
    });

    it('continues when maxRuns is raised [B10]', () => {
      assert.deepEqual(change(ended, { cron: '0 * * * *', maxRuns: 5 }).nextRunAt, at('01-01T13:00:00'));
    });

    it('continues when maxRuns is removed [B10]', () => {
      assert.deepEqual(change(ended, { cron: '0 * * * *' }).nextRunAt, at('01-01T13:00:00'));
    });
  });
});

describe('restartFrom', () => {
  it('records the reason of the skipped occurrences [B8] [F2]', () => {
    const before = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T10:00:00') });
    const { nextRunAt, pending } = restartFrom(before, before, LATER, 'paused');
    assert.deepEqual(nextRunAt, at('01-01T13:00:00'));
    assert.deepEqual(
      pending.map((entry) => entry.kind === 'skip' && [entry.reason, entry.at, entry.until]),
      [['paused', at('01-01T10:00:00'), new Date(LATER.getTime() + 1)]],
    );
  });

  it('skips an occurrence at the moment of the restart [F2]', () => {
    const before = stored({ cron: '30 12 * * *' }, { nextRunAt: LATER });
    const { nextRunAt, pending } = restartFrom(before, before, LATER, 'changed');
    assert.deepEqual([nextRunAt, pending.length], [at('01-02T12:30:00'), 1]);
  });

  it('records nothing if nothing was due [F2]', () => {
    const before = stored({ cron: '0 * * * *' }, { nextRunAt: at('01-01T13:00:00') });
    assert.deepEqual(restartFrom(before, before, LATER, 'changed').pending, []);
  });
});

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { occurrencesOf, type Occurrences } from '../../../src/domain/occurrences.js';
import type { ActiveRun } from '../../../src/domain/owed.js';
import { plan, planBackfill, planTrigger, type Plan, type Plannable } from '../../../src/domain/plan.js';
import type { Rule } from '../../../src/domain/rule.js';
import {
  DEFAULT_MISFIRE,
  MISFIRES,
  occurrenceId,
  OVERLAPS,
  type Misfire,
  type Overlap,
  type OwedRun,
  type OwedSkip,
} from '../../../src/domain/schedule.js';
import { fates, tally, type Fate } from '../../support/calendar.js';
import { instantsOf } from '../../support/calendar-oracle.js';
import { after, START } from '../../support/instants.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Due at every full hour, first at one o'clock. */
const HOURLY: Rule = { cron: '0 * * * *', timezone: 'UTC' };
const EVERY_SECOND: Rule = { cron: '* * * * * *', timezone: 'UTC' };
const NEVER: Occurrences = { next: () => null };

function aSchedule(fields: Partial<Plannable> = {}): Plannable {
  return {
    _id: 's',
    isActive: true,
    nextRunAt: after(HOUR),
    lastRunAt: null,
    runs: 0,
    maxRuns: null,
    owed: [],
    active: null,
    overlap: 'skip',
    misfire: DEFAULT_MISFIRE,
    ...fields,
  };
}

function misfire(policy: Misfire['policy'], limits: Partial<Misfire> = {}): Pick<Plannable, 'misfire'> {
  return { misfire: { ...DEFAULT_MISFIRE, policy, ...limits } };
}

function run(at: Date, since: Date = at): OwedRun {
  return { kind: 'run', id: occurrenceId('s', at), at, since };
}

function active(at: Date, since: Date = at): ActiveRun {
  return { id: occurrenceId('s', at), since };
}

function hourly(): Occurrences {
  return occurrencesOf(HOURLY, START);
}

function runsOf({ owed }: Pick<Plan, 'owed'>): OwedRun[] {
  return owed.filter((entry) => entry.kind === 'run');
}

function skipsOf({ owed }: Pick<Plan, 'owed'>): OwedSkip[] {
  return owed.filter((entry) => entry.kind === 'skip');
}

/** The hours after the start that run, and those that are skipped with their reason. */
function hours(made: Plan): { run: number[]; skip: [number, number, string][] } {
  const hour = (at: Date): number => (at.getTime() - START.getTime()) / HOUR;
  return {
    run: runsOf(made).map(({ at }) => hour(at)),
    skip: skipsOf(made).map(({ at, until, reason }) => [hour(at), hour(until), reason]),
  };
}

describe('plan', () => {
  it('C7 before its time nothing happens', () => {
    const schedule = aSchedule();
    assert.deepEqual(plan(schedule, hourly(), null, after(HOUR - 1)), {
      nextRunAt: after(HOUR),
      lastRunAt: null,
      runs: 0,
      owed: [],
      active: null,
      cancel: null,
    });
  });

  it('C7 at its time: one run, the next time stored', () => {
    assert.deepEqual(plan(aSchedule(), hourly(), null, after(HOUR)), {
      nextRunAt: after(2 * HOUR),
      lastRunAt: after(HOUR),
      runs: 1,
      owed: [run(after(HOUR))],
      active: 's@2026-01-01T01:00:00.000Z',
      cancel: null,
    });
  });

  it('C7 one that has no next time stays without', () => {
    const ended = plan(aSchedule({ nextRunAt: null, runs: 3 }), hourly(), null, after(DAY));
    assert.deepEqual([ended.nextRunAt, ended.owed, ended.runs], [null, [], 3]);
    const last = plan(aSchedule(), NEVER, null, after(2 * HOUR));
    assert.deepEqual([last.nextRunAt, runsOf(last)], [null, []]);
  });

  it('F3 whoever decides on the same facts decides the same, and changes none of them', () => {
    const schedule = aSchedule({ ...misfire('all'), owed: [run(START)], active: 's@0', overlap: 'replace' });
    const copy = structuredClone(schedule);
    const decide = (): Plan => plan(schedule, hourly(), active(START), after(5 * HOUR));
    assert.deepEqual(decide(), decide());
    assert.deepEqual(schedule, copy);
  });

  describe('misfires', () => {
    it('D13 up to a minute late is on time, whatever the policy; a millisecond more is not', () => {
      for (const policy of MISFIRES) {
        const onTime = plan(aSchedule(misfire(policy)), hourly(), null, after(HOUR + MINUTE));
        assert.deepEqual(hours(onTime), { run: [1], skip: [] });
      }
      const late = after(HOUR + MINUTE + 1);
      const skipped = plan(aSchedule(misfire('skip')), hourly(), null, late);
      assert.deepEqual(runsOf(skipped), []);
      assert.deepEqual(
        skipsOf(skipped).map(({ at, count, reason }) => [at, count, reason]),
        [[after(HOUR), 1, 'misfire']],
      );
      for (const policy of ['once', 'all'] as const)
        assert.deepEqual(hours(plan(aSchedule(misfire(policy)), hourly(), null, late)).run, [1]);
    });

    const down: [string, Partial<Misfire> & Pick<Misfire, 'policy'>, number[], [number, number, string][]][] =
      [
        ['skip: none of the three', { policy: 'skip' }, [4], [[1, 4, 'misfire']]],
        ['once: the last of the three', { policy: 'once' }, [3, 4], [[1, 3, 'misfire']]],
        ['all: the three', { policy: 'all' }, [1, 2, 3, 4], []],
        ['all, cap 2: the last two', { policy: 'all', cap: 2 }, [2, 3, 4], [[1, 2, 'misfire']]],
        [
          'all, within two hours: those of two hours',
          { policy: 'all', within: 2 * HOUR },
          [2, 3, 4],
          [[1, 2, 'misfire']],
        ],
        [
          'all, a millisecond less: one less',
          { policy: 'all', within: 2 * HOUR - 1 },
          [3, 4],
          [[1, 3, 'misfire']],
        ],
        ['once, within half an hour: none', { policy: 'once', within: HOUR / 2 }, [4], [[1, 4, 'misfire']]],
        ['all, within nothing: what is on time', { policy: 'all', within: 0 }, [4], [[1, 4, 'misfire']]],
      ];
    for (const [name, limits, run, skip] of down) {
      it(`D13 down for three hours and back on the hour, ${name}`, () => {
        const made = plan(
          aSchedule({ ...misfire(limits.policy, limits), overlap: 'allow' }),
          hourly(),
          null,
          after(4 * HOUR),
        );
        assert.deepEqual(hours(made), { run, skip });
        assert.deepEqual([made.nextRunAt, made.runs], [after(5 * HOUR), run.length]);
        assert.deepEqual(made.lastRunAt, after(4 * HOUR));
      });
    }

    it('D13 a skip says from where to where, how many, and that nobody was in the way', () => {
      const now = after(3 * HOUR + 30 * MINUTE);
      const [skip] = skipsOf(plan(aSchedule(misfire('skip')), hourly(), null, now));
      assert.deepEqual(skip, {
        kind: 'skip',
        id: 's@2026-01-01T01:00:00.000Z',
        at: after(HOUR),
        until: after(3 * HOUR + 29 * MINUTE),
        count: 3,
        reason: 'misfire',
        activeId: null,
        runningFor: null,
        since: now,
      });
    });

    for (const policy of MISFIRES) {
      it(`D13 every second, down for three hours, ${policy}: accounted for to the second`, () => {
        const now = after(3 * HOUR);
        const schedule = aSchedule({
          ...misfire(policy),
          overlap: 'allow',
          nextRunAt: after(SECOND),
        });
        const made = plan(schedule, occurrencesOf(EVERY_SECOND, START), null, now);
        const calendar = instantsOf(EVERY_SECOND, START, { from: START.getTime() + 1, to: now.getTime() });
        const counted = tally(
          fates(calendar, { jobs: runsOf(made).map(({ at }) => at), skips: skipsOf(made) }),
        );
        const onTime = 61;
        const madeUp = { skip: 0, once: 1, all: 100 }[policy];
        assert.deepEqual(counted, {
          misfire: 3 * 3600 - onTime - madeUp,
          job: onTime + madeUp,
        });
      });
    }

    it('D13 beyond a thousand nobody counts', () => {
      const schedule = aSchedule({ ...misfire('skip'), nextRunAt: after(SECOND) });
      const counts = [1000, 1001].map((missed) => {
        const now = after((missed + 60) * SECOND + 500);
        return skipsOf(plan(schedule, occurrencesOf(EVERY_SECOND, START), null, now))[0]?.count;
      });
      assert.deepEqual(counts, [1000, null]);
    });

    it('B10 before startsAt and after endsAt there is nothing to make up for', () => {
      const rule: Rule = { ...HOURLY, startsAt: after(2 * HOUR), endsAt: after(4 * HOUR) };
      const occurrences = occurrencesOf(rule, START);
      const schedule = aSchedule({ ...misfire('all'), nextRunAt: occurrences.next(START) });
      const made = plan(schedule, occurrences, null, after(10 * HOUR));
      assert.deepEqual(hours(made), { run: [2, 3, 4], skip: [] });
      assert.equal(made.nextRunAt, null);
    });

    it('B10 hours outside of between and days of except are neither missed nor skipped', () => {
      const rule: Rule = { ...HOURLY, between: ['09:00', '11:00'], except: ['2026-01-02'] };
      const occurrences = occurrencesOf(rule, START);
      const schedule = aSchedule({ ...misfire('all', { within: 7 * DAY }), nextRunAt: after(9 * HOUR) });
      const made = plan(schedule, occurrences, null, after(3 * DAY));
      assert.deepEqual(hours(made), { run: [9, 10, 11, 57, 58, 59], skip: [] });
      assert.deepEqual(made.nextRunAt, after(3 * DAY + 9 * HOUR));
    });
  });

  describe('overlaps', () => {
    const NOW = after(2 * HOUR);
    const running = active(after(HOUR), after(HOUR + MINUTE));
    const busy = (overlap: Overlap, owed: OwedRun[] = []): Plan =>
      plan(
        aSchedule({ overlap, nextRunAt: NOW, active: running.id, owed, lastRunAt: after(HOUR), runs: 1 }),
        hourly(),
        running,
        NOW,
      );

    it('Y5 skip: recorded, with which run was in the way and for how long it has been running', () => {
      const made = busy('skip');
      assert.deepEqual(made, {
        nextRunAt: after(3 * HOUR),
        lastRunAt: after(HOUR),
        runs: 1,
        active: running.id,
        cancel: null,
        owed: [
          {
            kind: 'skip',
            id: 's@2026-01-01T02:00:00.000Z',
            at: NOW,
            until: after(2 * HOUR + 1),
            count: 1,
            reason: 'overlap',
            activeId: running.id,
            runningFor: 59 * MINUTE,
            since: NOW,
          },
        ],
      });
    });

    it('Y5 skip: made-up runs wait in line for each other, and whoever comes then is skipped', () => {
      const first = plan(aSchedule(misfire('all')), hourly(), null, after(3 * HOUR));
      assert.deepEqual([hours(first).run, first.active], [[1, 2, 3], 's@2026-01-01T01:00:00.000Z']);
      const waiting = { ...aSchedule(misfire('all')), ...first, owed: first.owed.slice(1) };
      const second = plan(waiting, hourly(), active(after(HOUR)), after(4 * HOUR));
      assert.deepEqual(hours(second).skip, [[4, 4 + 1 / HOUR, 'overlap']]);
      assert.deepEqual(hours(second).run, [2, 3]);
    });

    it('B10 queue: waits in line, in order', () => {
      const made = busy('queue', [run(after(HOUR + 30 * MINUTE))]);
      assert.deepEqual(hours(made).run, [1.5, 2]);
      assert.deepEqual([made.active, made.cancel, made.runs], [running.id, null, 2]);
    });

    it('B10 queue: when the current one is over the first in line goes', () => {
      const waiting = [run(after(HOUR)), run(NOW)];
      const schedule = aSchedule({
        overlap: 'queue',
        nextRunAt: after(3 * HOUR),
        owed: waiting,
        active: 's@0',
      });
      const made = plan(schedule, hourly(), null, NOW);
      assert.deepEqual([made.active, made.owed], [waiting[0]!.id, waiting]);
    });

    it('B10 queue: past a thousand in line they are skipped', () => {
      const line = Array.from({ length: 999 }, (_, index) => run(after(index)));
      const schedule = aSchedule({
        ...misfire('all'),
        overlap: 'queue',
        owed: line,
        active: running.id,
      });
      const made = plan(schedule, hourly(), running, after(3 * HOUR));
      assert.equal(runsOf(made).length, 1000);
      assert.deepEqual(
        skipsOf(made).map(({ at, reason, activeId }) => [at, reason, activeId]),
        [[after(3 * HOUR), 'backlog', running.id]],
      );
    });

    it('B10 replace: the running one is to be cancelled, the newest is next, the others are skipped', () => {
      const made = busy('replace', [run(after(HOUR + 30 * MINUTE))]);
      assert.deepEqual(hours(made), { run: [2], skip: [[1.5, 1.5 + 1 / HOUR, 'replaced']] });
      assert.deepEqual([made.active, made.cancel], [running.id, running.id]);
    });

    it('B10 replace: the cancel is asked for again as long as somebody waits', () => {
      const schedule = aSchedule({ overlap: 'replace', nextRunAt: after(3 * HOUR), owed: [run(NOW)] });
      assert.equal(plan(schedule, hourly(), running, after(2 * HOUR + 1)).cancel, running.id);
      const nobody = { ...schedule, owed: [] };
      assert.equal(plan(nobody, hourly(), running, after(2 * HOUR + 1)).cancel, null);
    });

    it('B10 replace: several at once, the newest runs', () => {
      const schedule = aSchedule({ ...misfire('all'), overlap: 'replace' });
      const made = plan(schedule, hourly(), null, after(3 * HOUR));
      assert.deepEqual(hours(made).run, [3]);
      assert.deepEqual(
        hours(made).skip.map(([hour, , reason]) => [hour, reason]),
        [
          [1, 'replaced'],
          [2, 'replaced'],
        ],
      );
      assert.deepEqual([made.active, made.cancel], ['s@2026-01-01T03:00:00.000Z', null]);
    });

    it('B10 allow: both run', () => {
      const made = busy('allow');
      assert.deepEqual(hours(made), { run: [2], skip: [] });
      assert.deepEqual([made.active, made.cancel, made.runs], ['s@2026-01-01T02:00:00.000Z', null, 2]);
    });

    it('B10 a decision that is not carried out yet is its own run, not one in the way', () => {
      const pending = run(after(HOUR));
      for (const overlap of OVERLAPS) {
        const schedule = aSchedule({
          overlap,
          owed: [pending],
          active: pending.id,
          nextRunAt: after(2 * HOUR),
        });
        const made = plan(schedule, hourly(), active(after(HOUR)), after(HOUR + SECOND));
        assert.deepEqual([made.owed, made.active, made.cancel], [[pending], pending.id, null], overlap);
      }
    });
  });

  it('B8 while it is not active nothing new is let in, and the line still moves', () => {
    const line = [run(after(HOUR)), run(after(2 * HOUR))];
    const schedule = aSchedule({
      ...misfire('all'),
      ...{ isActive: false, overlap: 'queue', owed: line, active: occurrenceId('s', START) },
    });
    const made = plan(schedule, hourly(), null, after(5 * HOUR));
    assert.deepEqual([made.owed, made.active, made.nextRunAt], [line, line[0]!.id, after(HOUR)]);
  });

  describe('maxRuns', () => {
    it('B10 the last run is the end', () => {
      const made = plan(aSchedule({ maxRuns: 3, runs: 2 }), hourly(), null, after(HOUR));
      assert.deepEqual([made.nextRunAt, made.runs, hours(made).run], [null, 3, [1]]);
    });

    it('B10 of many that are due only as many as are left', () => {
      const schedule = aSchedule({ ...misfire('all'), overlap: 'allow', maxRuns: 5, runs: 3 });
      const made = plan(schedule, hourly(), null, after(4 * HOUR));
      assert.deepEqual([made.nextRunAt, made.runs, hours(made).run], [null, 5, [1, 2]]);
    });

    it('B10 what was skipped is not counted', () => {
      const schedule = aSchedule({ maxRuns: 2, runs: 1, active: 's@0' });
      const made = plan(schedule, hourly(), active(START), after(HOUR));
      assert.deepEqual([made.runs, made.nextRunAt], [1, after(2 * HOUR)]);
      const over = plan(aSchedule({ maxRuns: 2, runs: 2 }), hourly(), null, after(HOUR));
      assert.deepEqual([over.runs, over.nextRunAt, runsOf(over)], [2, null, []]);
    });

    it('B10 one that is replaced before it became a job is not counted, and was not the last run', () => {
      const schedule = aSchedule({
        overlap: 'replace',
        maxRuns: 3,
        runs: 1,
        lastRunAt: START,
        active: 's@0',
      });
      const first = plan(schedule, hourly(), active(START), after(HOUR));
      const second = plan({ ...schedule, ...first }, hourly(), active(START), after(2 * HOUR));
      assert.deepEqual(hours(second).run, [2]);
      assert.deepEqual([second.runs, second.nextRunAt], [2, after(3 * HOUR)]);
    });

    it('B10 F1 what a person triggered is no run of the calendar, also when it is replaced, or replaces one', () => {
      const schedule = aSchedule({ overlap: 'replace', maxRuns: 9, runs: 1, active: 's@0' });
      const triggered = { ...schedule, ...planTrigger(schedule, 's!1', active(START), after(MINUTE)) };
      const replacing = plan(triggered, hourly(), active(START), after(HOUR));
      assert.deepEqual([hours(replacing).run, replacing.runs], [[1], 2]);
      const waiting = { ...schedule, ...replacing };
      const replaced = planTrigger(waiting, 's!2', active(START), after(HOUR + MINUTE))!;
      assert.deepEqual([runsOf(replaced).map(({ id }) => id), replaced.runs], [['s!2'], 1]);
    });

    it('B10 D11 an occurrence of a pass for a given time is not counted: replaced, it takes nothing away', () => {
      const schedule = aSchedule({ overlap: 'replace', runs: 0, active: 's!0' });
      const due = occurrenceId('s', after(HOUR));
      const waiting = { ...schedule, ...planTrigger(schedule, due, active(START), after(HOUR)) };
      const replaced = planTrigger(waiting, 's!1', active(START), after(HOUR + MINUTE))!;
      assert.deepEqual([runsOf(replaced).map(({ id }) => id), replaced.runs], [['s!1'], 0]);
    });

    for (const overlap of ['skip', 'replace', 'queue'] as const) {
      it(`B10 ${overlap}, more are due than are left and it goes on: each is accounted for`, () => {
        const line = overlap === 'queue' ? Array.from({ length: 999 }, (_, i) => run(after(i + 1))) : [];
        const schedule = aSchedule({
          ...misfire('all'),
          overlap,
          maxRuns: 5,
          runs: 3,
          owed: line,
          active: occurrenceId('s', START),
        });
        const now = after(4 * HOUR);
        const made = plan(schedule, hourly(), active(START), now);
        assert.deepEqual(made.nextRunAt, after(5 * HOUR), 'there are runs left');
        const calendar = instantsOf(HOURLY, START, { from: START.getTime() + 1, to: now.getTime() });
        const jobs = runsOf(made)
          .map(({ at }) => at)
          .filter((at) => at >= after(HOUR));
        fates(calendar, { jobs, skips: skipsOf(made) });
      });
    }
  });

  describe('triggered by a person', () => {
    const NOW = after(10 * MINUTE);

    it('F1 runs besides the calendar, and counts as no run of it', () => {
      const schedule = aSchedule({ maxRuns: 3, runs: 1, lastRunAt: START });
      const made = planTrigger(schedule, 's!1', null, NOW);
      assert.deepEqual(made, {
        nextRunAt: after(HOUR),
        lastRunAt: START,
        runs: 1,
        owed: [{ kind: 'run', id: 's!1', at: NOW, since: NOW }],
        active: 's!1',
        cancel: null,
      });
    });

    it('F1 one that is replaced before its turn takes nothing from an occurrence of the same instant', () => {
      const schedule = aSchedule({ overlap: 'replace', active: 's@0', nextRunAt: NOW });
      const tenMinutely = occurrencesOf({ cron: '*/10 * * * *', timezone: 'UTC' }, START);
      const triggered = planTrigger(schedule, 's!1', active(START), NOW)!;
      const made = plan({ ...schedule, ...triggered }, tenMinutely, active(START), NOW);
      assert.deepEqual(
        runsOf(made).map(({ id }) => id),
        ['s@2026-01-01T00:10:00.000Z'],
      );
      assert.deepEqual(
        skipsOf(made).map(({ id, reason }) => [id, reason]),
        [['s!1', 'replaced']],
      );
    });

    it('F1 by the overlap policy: refused, in line, in place of the running one, or beside it', () => {
      const running = active(START);
      const made = Object.fromEntries(
        OVERLAPS.map((overlap) => {
          const trigger = planTrigger(aSchedule({ overlap, active: running.id }), 's!1', running, NOW);
          return [overlap, trigger && [runsOf(trigger).map(({ id }) => id), trigger.active, trigger.cancel]];
        }),
      );
      assert.deepEqual(made, {
        allow: [['s!1'], 's!1', null],
        skip: null,
        queue: [['s!1'], running.id, null],
        replace: [['s!1'], running.id, running.id],
      });
    });
  });

  describe('backfill', () => {
    it('F1 past occurrences, one after another where they must not overlap', () => {
      const past = [run(after(-2 * HOUR), START), run(after(-HOUR), START)];
      for (const overlap of OVERLAPS) {
        const made = planBackfill(aSchedule({ overlap, runs: 4 }), past, null);
        const patient = past.map((one) => ({ ...one, patient: true }));
        assert.deepEqual([made.owed, made.runs, made.nextRunAt], [patient, 4, after(HOUR)], overlap);
        assert.equal(made.active, overlap === 'allow' ? null : past[0]!.id, overlap);
      }
    });

    it('F1 B10 replace: nobody has to make way for what a person asked for, and it makes way for nobody', () => {
      const running = active(after(-2 * HOUR));
      const schedule = aSchedule({ overlap: 'replace', active: running.id });
      const backfilled = { ...schedule, ...planBackfill(schedule, [run(after(-HOUR))], running) };
      assert.equal(plan(backfilled, hourly(), running, START).cancel, null);
      const made = plan(backfilled, hourly(), running, after(HOUR));
      assert.deepEqual([hours(made).run, hours(made).skip], [[-1, 1], []]);
    });

    it('F1 an occurrence that was asked for before it was decided runs once', () => {
      for (const overlap of OVERLAPS) {
        const schedule = aSchedule({ overlap });
        const asked = { ...schedule, ...planBackfill(schedule, [run(after(HOUR))], null) };
        const made = plan(asked, hourly(), null, after(HOUR));
        assert.deepEqual([runsOf(made).length, skipsOf(made)], [1, []], overlap);
      }
    });

    it('F1 behind the current run and what waits already', () => {
      const running = active(after(-3 * HOUR));
      const waiting = run(after(-2 * HOUR));
      const schedule = aSchedule({ overlap: 'queue', owed: [waiting], active: running.id });
      const made = planBackfill(schedule, [run(after(-HOUR))], running);
      assert.deepEqual(
        [made.owed.map(({ id }) => id), made.active],
        [[waiting.id, 's@2025-12-31T23:00:00.000Z'], running.id],
      );
    });
  });

  /** A schedule in a small world: looked at now and then, by processes that may die right after they decided. */
  describe('over time', () => {
    interface Step {
      /** Since the step before. */
      wait: number;
      /** The current run ends before this step. */
      ends: boolean;
      /** Whoever decides dies before carrying it out. */
      dies: boolean;
      trigger: boolean;
    }

    interface Life {
      rule: Rule;
      overlap: Overlap;
      misfire: Misfire;
      maxRuns: number | null;
      steps: Step[];
    }

    const waits = fc.oneof(
      fc.integer({ min: 0, max: 2 * MINUTE }),
      fc.constantFrom(0, MINUTE, MINUTE + 1, 10 * MINUTE),
      fc.integer({ min: 0, max: 5 * HOUR }),
    );
    const lives = fc.record<Life>({
      rule: fc.constantFrom<Rule[]>(
        { cron: '*/30 * * * * *', timezone: 'UTC' },
        { cron: '* * * * *', timezone: 'Asia/Kolkata' },
        { cron: '*/10 * * * *', timezone: 'UTC' },
        { every: 45 * SECOND, timezone: 'UTC' },
        { ...HOURLY, endsAt: after(9 * HOUR) },
      ),
      overlap: fc.constantFrom(...OVERLAPS),
      misfire: fc.record({
        policy: fc.constantFrom(...MISFIRES),
        within: fc.constantFrom(0, 30 * SECOND, HOUR, DAY),
        cap: fc.integer({ min: 1, max: 6 }),
      }),
      maxRuns: fc.constant(null),
      steps: fc.array(
        fc.record<Step>({
          wait: waits,
          ends: fc.boolean(),
          dies: fc.boolean(),
          trigger: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
        }),
        { minLength: 1, maxLength: 12 },
      ),
    });

    /** Lives it through; returns what became of each occurrence. */
    function live({ rule, overlap, misfire, maxRuns, steps }: Life): { fates: Fate[]; most: number } {
      const occurrences = occurrencesOf(rule, START);
      const schedule = aSchedule({ nextRunAt: occurrences.next(START), overlap, misfire, maxRuns });
      const jobs = new Map<string, { at: Date; over: boolean }>();
      const skips: OwedSkip[] = [];
      let now = START;
      let lastDecided = START;
      let most = 0;
      const current = (): ActiveRun | null => {
        const { active: id, owed } = schedule;
        if (id === null || overlap === 'allow') return null;
        const isPending = owed.some((entry) => entry.id === id);
        return jobs.get(id)?.over === false || (!jobs.has(id) && isPending) ? { id, since: START } : null;
      };
      const take = (made: Plan, dies: boolean): void => {
        const { cancel, ...fields } = made;
        Object.assign(schedule, fields);
        if (dies) return;
        for (const entry of made.owed) {
          if (entry.kind === 'skip') skips.push(entry);
          else if (overlap === 'allow' || entry.id === made.active)
            jobs.set(entry.id, jobs.get(entry.id) ?? { at: entry.at, over: false });
        }
        schedule.owed = made.owed.filter(({ kind, id }) => kind === 'run' && !jobs.has(id));
        if (cancel !== null && jobs.has(cancel)) jobs.get(cancel)!.over = true;
      };
      for (const [index, { wait, ends, dies, trigger }] of steps.entries()) {
        now = after(wait, now);
        const runs = jobs.get(schedule.active ?? '');
        if (ends && runs !== undefined) runs.over = true;
        if (schedule.nextRunAt !== null) lastDecided = now;
        take(plan(schedule, occurrences, current(), now), dies);
        // Not on the second: what a person asks for is no occurrence.
        const triggered = trigger ? planTrigger(schedule, `s!${index}`, current(), after(7, now)) : null;
        if (triggered !== null) take(triggered, dies);
        most = Math.max(most, [...jobs.values()].filter(({ over }) => !over).length);
      }
      const ofCalendar = (id: string): boolean => id.includes('@');
      // Over because it has had its runs, and not because the rule has an end.
      const isOver = maxRuns !== null && schedule.runs >= maxRuns;
      const until = isOver ? schedule.lastRunAt! : lastDecided;
      const calendar = instantsOf(rule, START, { from: START.getTime() + 1, to: until.getTime() });
      return {
        most,
        fates: fates(calendar, {
          jobs: [...jobs].filter(([id]) => ofCalendar(id)).map(([, { at }]) => at),
          waiting: runsOf(schedule)
            .filter(({ id }) => ofCalendar(id))
            .map(({ at }) => at),
          // A triggered run that was replaced is no occurrence.
          skips: [...skips, ...skipsOf(schedule)].filter(
            ({ at, reason }) => reason !== 'replaced' || calendar.includes(at.getTime()),
          ),
        }),
      };
    }

    it('B10 D13 jobs, those in line and skips are the calendar, and no policy but allow lets two run', () => {
      fc.assert(
        fc.property(lives, (life) => {
          const { most } = live(life);
          if (life.overlap !== 'allow') assert.ok(most <= 1, `${most} at a time`);
        }),
        { seed: 20_260_101, numRuns: 500, endOnFailure: false },
      );
    });

    it('B10 the same up to its end with maxRuns', () => {
      const limited = fc
        .tuple(lives, fc.integer({ min: 1, max: 8 }))
        .map(([life, maxRuns]) => ({ ...life, maxRuns }));
      fc.assert(
        fc.property(limited, (life) => {
          live(life);
        }),
        { seed: 20_260_101, numRuns: 200, endOnFailure: false },
      );
    });
  });
});

import assert from 'node:assert/strict';
import { type Occurrences, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import { plan, type Plan, planTrigger } from '../../../../src/domain/schedule/plan.js';
import {
  type Misfire,
  MISFIRES,
  occurrenceId,
  type Overlap,
  OVERLAPS,
  type PendingRun,
} from '../../../../src/domain/schedule/schedule.js';
import { instantsOf } from '../../../support/calendar-oracle.js';
import { outcomesOf, countOutcomes } from '../../../support/occurrence-outcomes.js';
import { timeAfter, START } from '../../../support/instants.js';
import { active, aPlanInput, hours, misfire, run, runsOf, skipsOf } from '../../../support/factories/plan.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Due at every full hour; the first one is at 01:00. */
const HOURLY: Rule = { cron: '0 * * * *', timezone: 'UTC' };
const EVERY_SECOND: Rule = { cron: '* * * * * *', timezone: 'UTC' };
const NEVER: Occurrences = { next: () => null };

function hourly(): Occurrences {
  return occurrencesOf(HOURLY, START);
}

describe('plan', () => {
  it('changes nothing before the schedule is due [C7]', () => {
    const schedule = aPlanInput();
    assert.deepEqual(plan(schedule, hourly(), null, timeAfter(HOUR - 1)), {
      nextRunAt: timeAfter(HOUR),
      lastRunAt: null,
      runs: 0,
      pending: [],
      active: null,
      cancel: null,
    });
  });

  it('has one run and the next run time when the schedule is due [C7]', () => {
    assert.deepEqual(plan(aPlanInput(), hourly(), null, timeAfter(HOUR)), {
      nextRunAt: timeAfter(2 * HOUR),
      lastRunAt: timeAfter(HOUR),
      runs: 1,
      pending: [run(timeAfter(HOUR))],
      active: 's@2026-01-01T01:00:00.000Z',
      cancel: null,
    });
  });

  it('has no next run for a schedule that has ended [C7]', () => {
    const ended = plan(aPlanInput({ nextRunAt: null, runs: 3 }), hourly(), null, timeAfter(DAY));
    assert.deepEqual([ended.nextRunAt, ended.pending, ended.runs], [null, [], 3]);
    const last = plan(aPlanInput(), NEVER, null, timeAfter(2 * HOUR));
    assert.deepEqual([last.nextRunAt, runsOf(last)], [null, []]);
  });

  it('depends only on its input and does not change it [F3]', () => {
    const schedule = aPlanInput({
      ...misfire('all'),
      pending: [run(START)],
      active: 's@0',
      overlap: 'replace',
    });
    const copy = structuredClone(schedule);
    const decide = (): Plan => plan(schedule, hourly(), active(START), timeAfter(5 * HOUR));
    assert.deepEqual(decide(), decide());
    assert.deepEqual(schedule, copy);
  });

  describe('misfires', () => {
    it('finds the last runs without computing all of a month of seconds [F5]', () => {
      const rule = occurrencesOf({ cron: '* * * * 1 *', timezone: 'UTC' }, START);
      let computed = 0;
      const counted: Occurrences = { next: (after) => (computed++, rule.next(after)) };
      const december = timeAfter(340 * DAY);
      const schedule = aPlanInput({
        ...misfire('all', { within: 365 * DAY, cap: 1000 }),
        ...{ overlap: 'queue', nextRunAt: timeAfter(SECOND) },
      });
      const runs = runsOf(plan(schedule, counted, null, december));
      const first = Date.UTC(2026, 1, 1) - 1000 * SECOND;
      assert.deepEqual(
        runs.map(({ at }) => at.getTime()),
        Array.from({ length: 1000 }, (_, index) => first + index * SECOND),
      );
      assert.ok(computed < 100_000, `${computed} occurrences`);
    });

    it('are runs more than a minute late, whatever the policy [D13]', () => {
      for (const policy of MISFIRES) {
        const onTime = plan(aPlanInput(misfire(policy)), hourly(), null, timeAfter(HOUR + MINUTE));
        assert.deepEqual(hours(onTime), { run: [1], skip: [] });
      }
      const late = timeAfter(HOUR + MINUTE + 1);
      const skipped = plan(aPlanInput(misfire('skip')), hourly(), null, late);
      assert.deepEqual(runsOf(skipped), []);
      assert.deepEqual(
        skipsOf(skipped).map(({ at, count, reason }) => [at, count, reason]),
        [[timeAfter(HOUR), 1, 'misfire']],
      );
      for (const policy of ['once', 'all'] as const)
        assert.deepEqual(hours(plan(aPlanInput(misfire(policy)), hourly(), null, late)).run, [1]);
    });

    const afterDowntime: [
      string,
      Partial<Misfire> & Pick<Misfire, 'policy'>,
      number[],
      [number, number, string][],
    ][] = [
      ['skip runs none of the three', { policy: 'skip' }, [4], [[1, 4, 'misfire']]],
      ['once runs the last of the three', { policy: 'once' }, [3, 4], [[1, 3, 'misfire']]],
      ['all runs the three', { policy: 'all' }, [1, 2, 3, 4], []],
      ['all with cap 2 runs the last two', { policy: 'all', cap: 2 }, [2, 3, 4], [[1, 2, 'misfire']]],
      [
        'all within two hours runs those of two hours',
        { policy: 'all', within: 2 * HOUR },
        [2, 3, 4],
        [[1, 2, 'misfire']],
      ],
      [
        'all within a millisecond less runs one less',
        { policy: 'all', within: 2 * HOUR - 1 },
        [3, 4],
        [[1, 3, 'misfire']],
      ],
      ['once within half an hour runs none', { policy: 'once', within: HOUR / 2 }, [4], [[1, 4, 'misfire']]],
      ['all within 0 runs only the one on time', { policy: 'all', within: 0 }, [4], [[1, 4, 'misfire']]],
    ];
    for (const [name, limits, run, skip] of afterDowntime) {
      it(`after three hours of downtime that ends on the hour: ${name} [D13]`, () => {
        const made = plan(
          aPlanInput({ ...misfire(limits.policy, limits), overlap: 'allow' }),
          hourly(),
          null,
          timeAfter(4 * HOUR),
        );
        assert.deepEqual(hours(made), { run, skip });
        assert.deepEqual([made.nextRunAt, made.runs], [timeAfter(5 * HOUR), run.length]);
        assert.deepEqual(made.lastRunAt, timeAfter(4 * HOUR));
      });
    }

    it('are recorded as one skip with their period and count, without a blocking run [D13]', () => {
      const now = timeAfter(3 * HOUR + 30 * MINUTE);
      const [skip] = skipsOf(plan(aPlanInput(misfire('skip')), hourly(), null, now));
      assert.deepEqual(skip, {
        kind: 'skip',
        id: 's@2026-01-01T01:00:00.000Z',
        at: timeAfter(HOUR),
        until: timeAfter(3 * HOUR + 29 * MINUTE),
        count: 3,
        reason: 'misfire',
        activeId: null,
        runningFor: null,
        since: now,
      });
    });

    for (const policy of MISFIRES) {
      it(`of a schedule that was due every second for three hours are all accounted for with ${policy} [D13]`, () => {
        const now = timeAfter(3 * HOUR);
        const schedule = aPlanInput({
          ...misfire(policy),
          overlap: 'allow',
          nextRunAt: timeAfter(SECOND),
        });
        const made = plan(schedule, occurrencesOf(EVERY_SECOND, START), null, now);
        const calendar = instantsOf(EVERY_SECOND, START, { from: START.getTime() + 1, to: now.getTime() });
        const counted = countOutcomes(
          outcomesOf(calendar, { jobs: runsOf(made).map(({ at }) => at), skips: skipsOf(made) }),
        );
        const onTime = 61;
        const lateRuns = { skip: 0, once: 1, all: 100 }[policy];
        assert.deepEqual(counted, {
          misfire: 3 * 3600 - onTime - lateRuns,
          job: onTime + lateRuns,
        });
      });
    }

    it('are counted only up to a thousand [D13]', () => {
      const schedule = aPlanInput({ ...misfire('skip'), nextRunAt: timeAfter(SECOND) });
      const counts = [1000, 1001].map((missed) => {
        const now = timeAfter((missed + 60) * SECOND + 500);
        return skipsOf(plan(schedule, occurrencesOf(EVERY_SECOND, START), null, now))[0]?.count;
      });
      assert.deepEqual(counts, [1000, null]);
    });

    it('are not found before startsAt and after endsAt [B10]', () => {
      const rule: Rule = { ...HOURLY, startsAt: timeAfter(2 * HOUR), endsAt: timeAfter(4 * HOUR) };
      const occurrences = occurrencesOf(rule, START);
      const schedule = aPlanInput({ ...misfire('all'), nextRunAt: occurrences.next(START) });
      const made = plan(schedule, occurrences, null, timeAfter(10 * HOUR));
      assert.deepEqual(hours(made), { run: [2, 3, 4], skip: [] });
      assert.equal(made.nextRunAt, null);
    });

    it('are not found outside between and on days of except [B10]', () => {
      const rule: Rule = { ...HOURLY, between: ['09:00', '11:00'], except: ['2026-01-02'] };
      const occurrences = occurrencesOf(rule, START);
      const schedule = aPlanInput({ ...misfire('all', { within: 7 * DAY }), nextRunAt: timeAfter(9 * HOUR) });
      const made = plan(schedule, occurrences, null, timeAfter(3 * DAY));
      assert.deepEqual(hours(made), { run: [9, 10, 11, 57, 58, 59], skip: [] });
      assert.deepEqual(made.nextRunAt, timeAfter(3 * DAY + 9 * HOUR));
    });
  });

  describe('overlaps', () => {
    const NOW = timeAfter(2 * HOUR);
    const running = active(timeAfter(HOUR), timeAfter(HOUR + MINUTE));
    const planWhileActive = (overlap: Overlap, pending: PendingRun[] = []): Plan =>
      plan(
        aPlanInput({
          overlap,
          nextRunAt: NOW,
          active: running.id,
          pending,
          lastRunAt: timeAfter(HOUR),
          runs: 1,
        }),
        hourly(),
        running,
        NOW,
      );

    it('skip: records the skip with the blocking run and for how long it has been running [Y5]', () => {
      const made = planWhileActive('skip');
      assert.deepEqual(made, {
        nextRunAt: timeAfter(3 * HOUR),
        lastRunAt: timeAfter(HOUR),
        runs: 1,
        active: running.id,
        cancel: null,
        pending: [
          {
            kind: 'skip',
            id: 's@2026-01-01T02:00:00.000Z',
            at: NOW,
            until: timeAfter(2 * HOUR + 1),
            count: 1,
            reason: 'overlap',
            activeId: running.id,
            runningFor: 59 * MINUTE,
            since: NOW,
          },
        ],
      });
    });

    it('skip: missed runs follow one after another, and an occurrence that is due meanwhile is skipped [Y5]', () => {
      const first = plan(aPlanInput(misfire('all')), hourly(), null, timeAfter(3 * HOUR));
      assert.deepEqual([hours(first).run, first.active], [[1, 2, 3], 's@2026-01-01T01:00:00.000Z']);
      const waiting = { ...aPlanInput(misfire('all')), ...first, pending: first.pending.slice(1) };
      const second = plan(waiting, hourly(), active(timeAfter(HOUR)), timeAfter(4 * HOUR));
      assert.deepEqual(hours(second).skip, [[4, 4 + 1 / HOUR, 'overlap']]);
      assert.deepEqual(hours(second).run, [2, 3]);
    });

    it('queue: adds the occurrence after earlier pending runs [B10]', () => {
      const made = planWhileActive('queue', [run(timeAfter(HOUR + 30 * MINUTE))]);
      assert.deepEqual(hours(made).run, [1.5, 2]);
      assert.deepEqual([made.active, made.cancel, made.runs], [running.id, null, 2]);
    });

    it('queue: starts the first pending run when the active one has ended [B10]', () => {
      const waiting = [run(timeAfter(HOUR)), run(NOW)];
      const schedule = aPlanInput({
        overlap: 'queue',
        nextRunAt: timeAfter(3 * HOUR),
        pending: waiting,
        active: 's@0',
      });
      const made = plan(schedule, hourly(), null, NOW);
      assert.deepEqual([made.active, made.pending], [waiting[0]!.id, waiting]);
    });

    it('queue: skips beyond a thousand pending runs [B10]', () => {
      const queued = Array.from({ length: 999 }, (_, index) => run(timeAfter(index)));
      const schedule = aPlanInput({
        ...misfire('all'),
        overlap: 'queue',
        pending: queued,
        active: running.id,
      });
      const made = plan(schedule, hourly(), running, timeAfter(3 * HOUR));
      assert.equal(runsOf(made).length, 1000);
      assert.deepEqual(
        skipsOf(made).map(({ at, reason, activeId }) => [at, reason, activeId]),
        [[timeAfter(3 * HOUR), 'backlog', running.id]],
      );
    });

    it('replace: cancels the active run, keeps the newest as the next and skips the others [B10]', () => {
      const made = planWhileActive('replace', [run(timeAfter(HOUR + 30 * MINUTE))]);
      assert.deepEqual(hours(made), { run: [2], skip: [[1.5, 1.5 + 1 / HOUR, 'replaced']] });
      assert.deepEqual([made.active, made.cancel], [running.id, running.id]);
    });

    it('replace: requests the cancellation again as long as a run is pending [B10]', () => {
      const schedule = aPlanInput({
        overlap: 'replace',
        nextRunAt: timeAfter(3 * HOUR),
        pending: [run(NOW)],
      });
      assert.equal(plan(schedule, hourly(), running, timeAfter(2 * HOUR + 1)).cancel, running.id);
      const withoutPending = { ...schedule, pending: [] };
      assert.equal(plan(withoutPending, hourly(), running, timeAfter(2 * HOUR + 1)).cancel, null);
    });

    it('replace: runs only the newest of several missed runs [B10]', () => {
      const schedule = aPlanInput({ ...misfire('all'), overlap: 'replace' });
      const made = plan(schedule, hourly(), null, timeAfter(3 * HOUR));
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

    it('allow: runs both [B10]', () => {
      const made = planWhileActive('allow');
      assert.deepEqual(hours(made), { run: [2], skip: [] });
      assert.deepEqual([made.active, made.cancel, made.runs], ['s@2026-01-01T02:00:00.000Z', null, 2]);
    });

    it('every policy: a run that is planned but not yet a job does not block itself [B10]', () => {
      const pending = run(timeAfter(HOUR));
      for (const overlap of OVERLAPS) {
        const schedule = aPlanInput({
          overlap,
          pending: [pending],
          active: pending.id,
          nextRunAt: timeAfter(2 * HOUR),
        });
        const made = plan(schedule, hourly(), active(timeAfter(HOUR)), timeAfter(HOUR + SECOND));
        assert.deepEqual([made.pending, made.active, made.cancel], [[pending], pending.id, null], overlap);
      }
    });
  });

  it('adds no occurrences while the schedule is not active, and pending runs still start [B8]', () => {
    const queued = [run(timeAfter(HOUR)), run(timeAfter(2 * HOUR))];
    const schedule = aPlanInput({
      ...misfire('all'),
      ...{ isActive: false, overlap: 'queue', pending: queued, active: occurrenceId('s', START) },
    });
    const made = plan(schedule, hourly(), null, timeAfter(5 * HOUR));
    assert.deepEqual([made.pending, made.active, made.nextRunAt], [queued, queued[0]!.id, timeAfter(HOUR)]);
  });

  describe('maxRuns', () => {
    it('ends the schedule after the last run [B10]', () => {
      const made = plan(aPlanInput({ maxRuns: 3, runs: 2 }), hourly(), null, timeAfter(HOUR));
      assert.deepEqual([made.nextRunAt, made.runs, hours(made).run], [null, 3, [1]]);
    });

    it('limits the runs if more are due [B10]', () => {
      const schedule = aPlanInput({ ...misfire('all'), overlap: 'allow', maxRuns: 5, runs: 3 });
      const made = plan(schedule, hourly(), null, timeAfter(4 * HOUR));
      assert.deepEqual([made.nextRunAt, made.runs, hours(made).run], [null, 5, [1, 2]]);
    });

    it('does not count skipped occurrences [B10]', () => {
      const schedule = aPlanInput({ maxRuns: 2, runs: 1, active: 's@0' });
      const made = plan(schedule, hourly(), active(START), timeAfter(HOUR));
      assert.deepEqual([made.runs, made.nextRunAt], [1, timeAfter(2 * HOUR)]);
      const ended = plan(aPlanInput({ maxRuns: 2, runs: 2 }), hourly(), null, timeAfter(HOUR));
      assert.deepEqual([ended.runs, ended.nextRunAt, runsOf(ended)], [2, null, []]);
    });

    it('does not count a run that is replaced before it became a job [B10]', () => {
      const schedule = aPlanInput({
        overlap: 'replace',
        maxRuns: 3,
        runs: 1,
        lastRunAt: START,
        active: 's@0',
      });
      const first = plan(schedule, hourly(), active(START), timeAfter(HOUR));
      const second = plan({ ...schedule, ...first }, hourly(), active(START), timeAfter(2 * HOUR));
      assert.deepEqual(hours(second).run, [2]);
      assert.deepEqual([second.runs, second.nextRunAt], [2, timeAfter(3 * HOUR)]);
    });

    it('does not count manual runs, whether they replace a run or are replaced [B10] [F1]', () => {
      const schedule = aPlanInput({ overlap: 'replace', maxRuns: 9, runs: 1, active: 's@0' });
      const triggered = { ...schedule, ...planTrigger(schedule, 's+1', active(START), timeAfter(MINUTE)) };
      const replacing = plan(triggered, hourly(), active(START), timeAfter(HOUR));
      assert.deepEqual([hours(replacing).run, replacing.runs], [[1], 2]);
      const waiting = { ...schedule, ...replacing };
      const replaced = planTrigger(waiting, 's!2', active(START), timeAfter(HOUR + MINUTE))!;
      assert.deepEqual([runsOf(replaced).map(({ id }) => id), replaced.runs], [['s!2'], 1]);
    });

    it('does not count an occurrence of a pass at a chosen instant [B10] [D11]', () => {
      const schedule = aPlanInput({ overlap: 'replace', runs: 0, active: 's!0' });
      const due = occurrenceId('s', timeAfter(HOUR));
      const waiting = { ...schedule, ...planTrigger(schedule, due, active(START), timeAfter(HOUR)) };
      const replaced = planTrigger(waiting, 's+1', active(START), timeAfter(HOUR + MINUTE))!;
      assert.deepEqual([runsOf(replaced).map(({ id }) => id), replaced.runs], [['s+1'], 0]);
    });

    it('does not run one more when an occurrence of a pass at a chosen instant is replaced [B10] [D11]', () => {
      const schedule = aPlanInput({ overlap: 'replace', maxRuns: 2, runs: 1, active: 's@0' });
      const chosen = occurrenceId('s', timeAfter(MINUTE));
      const waiting = { ...schedule, ...planTrigger(schedule, chosen, active(START), timeAfter(MINUTE)) };
      const made = plan(waiting, hourly(), active(START), timeAfter(HOUR));
      assert.deepEqual([hours(made).run, made.runs, made.nextRunAt], [[1], 2, null]);
    });

    it('replaces nothing after maxRuns was lowered below the runs so far [B10]', () => {
      const schedule = aPlanInput({ overlap: 'replace', maxRuns: 2, runs: 3, active: 's@0' });
      const made = plan(schedule, hourly(), active(START), timeAfter(HOUR));
      assert.deepEqual([runsOf(made), made.runs, made.nextRunAt, made.cancel], [[], 3, null, null]);
    });

    it('runs no occurrence in the place of a triggered run that does not count [B10] [F1]', () => {
      const schedule = aPlanInput({ overlap: 'replace', maxRuns: 2, runs: 2, active: 's@0' });
      const triggered = { ...schedule, ...planTrigger(schedule, 's+1', active(START), timeAfter(MINUTE)) };
      const made = plan(triggered, hourly(), active(START), timeAfter(HOUR));
      assert.deepEqual([runsOf(made).map(({ id }) => id), made.runs], [['s+1'], 2]);
    });

    for (const overlap of ['skip', 'replace', 'queue'] as const) {
      it(`accounts for every occurrence if more are due than runs are left, with ${overlap} [B10]`, () => {
        const queued =
          overlap === 'queue' ? Array.from({ length: 999 }, (_, i) => run(timeAfter(i + 1))) : [];
        const schedule = aPlanInput({
          ...misfire('all'),
          overlap,
          maxRuns: 5,
          runs: 3,
          pending: queued,
          active: occurrenceId('s', START),
        });
        const now = timeAfter(4 * HOUR);
        const made = plan(schedule, hourly(), active(START), now);
        assert.deepEqual(made.nextRunAt, timeAfter(5 * HOUR), 'there are runs left');
        const calendar = instantsOf(HOURLY, START, { from: START.getTime() + 1, to: now.getTime() });
        const jobs = runsOf(made)
          .map(({ at }) => at)
          .filter((at) => at >= timeAfter(HOUR));
        outcomesOf(calendar, { jobs, skips: skipsOf(made) });
      });
    }
  });
});

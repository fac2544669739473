import assert from 'node:assert/strict';
import { type Occurrences, occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import { plan, planBackfill, planTrigger } from '../../../../src/domain/schedule/plan.js';
import { OVERLAPS } from '../../../../src/domain/schedule/schedule.js';
import { timeAfter, START } from '../../../support/instants.js';
import { active, aPlanInput, hours, run, runsOf, skipsOf } from '../../../support/factories/plan.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Due at every full hour; the first one is at 01:00. */
const HOURLY: Rule = { cron: '0 * * * *', timezone: 'UTC' };

function hourly(): Occurrences {
  return occurrencesOf(HOURLY, START);
}

describe('plan', () => {
  describe('of a manual trigger', () => {
    const NOW = timeAfter(10 * MINUTE);

    it('runs in addition to the occurrences and does not count as one [F1]', () => {
      const schedule = aPlanInput({ maxRuns: 3, runs: 1, lastRunAt: START });
      const made = planTrigger(schedule, 's+1', null, NOW);
      assert.deepEqual(made, {
        nextRunAt: timeAfter(HOUR),
        lastRunAt: START,
        runs: 1,
        pending: [{ kind: 'run', id: 's+1', at: NOW, since: NOW }],
        active: 's+1',
        cancel: null,
      });
    });

    it('does not affect an occurrence at the same instant when it is replaced [F1]', () => {
      const schedule = aPlanInput({ overlap: 'replace', active: 's@0', nextRunAt: NOW });
      const tenMinutely = occurrencesOf({ cron: '*/10 * * * *', timezone: 'UTC' }, START);
      const triggered = planTrigger(schedule, 's+1', active(START), NOW)!;
      const made = plan({ ...schedule, ...triggered }, tenMinutely, active(START), NOW);
      assert.deepEqual(
        runsOf(made).map(({ id }) => id),
        ['s@2026-01-01T00:10:00.000Z'],
      );
      assert.deepEqual(
        skipsOf(made).map(({ id, reason }) => [id, reason]),
        [['s+1', 'replaced']],
      );
    });

    it('follows the overlap policy: rejected, queued, replacing or next to the active run [F1]', () => {
      const running = active(START);
      const made = Object.fromEntries(
        OVERLAPS.map((overlap) => {
          const trigger = planTrigger(aPlanInput({ overlap, active: running.id }), 's+1', running, NOW);
          return [overlap, trigger && [runsOf(trigger).map(({ id }) => id), trigger.active, trigger.cancel]];
        }),
      );
      assert.deepEqual(made, {
        allow: [['s+1'], 's+1', null],
        skip: null,
        queue: [['s+1'], running.id, null],
        replace: [['s+1'], running.id, running.id],
      });
    });
  });

  describe('of a backfill', () => {
    it('queues past occurrences one after another unless they may overlap [F1]', () => {
      const past = [run(timeAfter(-2 * HOUR), START), run(timeAfter(-HOUR), START)];
      for (const overlap of OVERLAPS) {
        const made = planBackfill(aPlanInput({ overlap, runs: 4 }), past, null);
        const manual = past.map((entry) => ({ ...entry, manual: true }));
        assert.deepEqual([made.pending, made.runs, made.nextRunAt], [manual, 4, timeAfter(HOUR)], overlap);
        assert.equal(made.active, overlap === 'allow' ? null : past[0]!.id, overlap);
      }
    });

    it('neither replaces other runs nor is replaced with overlap replace [F1] [B10]', () => {
      const running = active(timeAfter(-2 * HOUR));
      const schedule = aPlanInput({ overlap: 'replace', active: running.id });
      const backfilled = { ...schedule, ...planBackfill(schedule, [run(timeAfter(-HOUR))], running) };
      assert.equal(plan(backfilled, hourly(), running, START).cancel, null);
      const made = plan(backfilled, hourly(), running, timeAfter(HOUR));
      assert.deepEqual([hours(made).run, hours(made).skip], [[-1, 1], []]);
    });

    it('runs an occurrence only once if it was backfilled before it was due [F1]', () => {
      for (const overlap of OVERLAPS) {
        const schedule = aPlanInput({ overlap });
        const backfilled = { ...schedule, ...planBackfill(schedule, [run(timeAfter(HOUR))], null) };
        const made = plan(backfilled, hourly(), null, timeAfter(HOUR));
        assert.deepEqual([runsOf(made).length, skipsOf(made)], [1, []], overlap);
      }
    });

    it('queues behind the active run and earlier pending ones [F1]', () => {
      const running = active(timeAfter(-3 * HOUR));
      const waiting = run(timeAfter(-2 * HOUR));
      const schedule = aPlanInput({ overlap: 'queue', pending: [waiting], active: running.id });
      const made = planBackfill(schedule, [run(timeAfter(-HOUR))], running);
      assert.deepEqual(
        [made.pending.map(({ id }) => id), made.active],
        [[waiting.id, 's@2025-12-31T23:00:00.000Z'], running.id],
      );
    });
  });
});

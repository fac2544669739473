import assert from 'node:assert/strict';
import fc from 'fast-check';
import { occurrencesOf } from '../../../../src/domain/calendar/occurrences.js';
import type { Rule } from '../../../../src/domain/calendar/rule.js';
import type { ActiveRun } from '../../../../src/domain/schedule/pending.js';
import { plan, type Plan, planTrigger } from '../../../../src/domain/schedule/plan.js';
import {
  type Misfire,
  MISFIRES,
  type Overlap,
  OVERLAPS,
  type PendingSkip,
} from '../../../../src/domain/schedule/schedule.js';
import { instantsOf } from '../../../support/calendar-oracle.js';
import { type OccurrenceOutcome, outcomesOf } from '../../../support/occurrence-outcomes.js';
import { timeAfter, START } from '../../../support/instants.js';
import { aPlanInput, runsOf, skipsOf } from '../../../support/factories/plan.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Due at every full hour, first at one o'clock. */
const HOURLY: Rule = { cron: '0 * * * *', timezone: 'UTC' };

describe('plan', () => {
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
        { ...HOURLY, endsAt: timeAfter(9 * HOUR) },
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
    function live({ rule, overlap, misfire, maxRuns, steps }: Life): {
      fates: OccurrenceOutcome[];
      most: number;
    } {
      const occurrences = occurrencesOf(rule, START);
      const schedule = aPlanInput({ nextRunAt: occurrences.next(START), overlap, misfire, maxRuns });
      const jobs = new Map<string, { at: Date; over: boolean }>();
      const skips: PendingSkip[] = [];
      let now = START;
      let lastDecided = START;
      let most = 0;
      const current = (): ActiveRun | null => {
        const { active: id, pending } = schedule;
        if (id === null || overlap === 'allow') return null;
        const isPending = pending.some((entry) => entry.id === id);
        return jobs.get(id)?.over === false || (!jobs.has(id) && isPending) ? { id, since: START } : null;
      };
      const take = (made: Plan, dies: boolean): void => {
        const { cancel, ...fields } = made;
        Object.assign(schedule, fields);
        if (dies) return;
        for (const entry of made.pending) {
          if (entry.kind === 'skip') skips.push(entry);
          else if (overlap === 'allow' || entry.id === made.active)
            jobs.set(entry.id, jobs.get(entry.id) ?? { at: entry.at, over: false });
        }
        schedule.pending = made.pending.filter(({ kind, id }) => kind === 'run' && !jobs.has(id));
        if (cancel !== null && jobs.has(cancel)) jobs.get(cancel)!.over = true;
      };
      for (const [index, { wait, ends, dies, trigger }] of steps.entries()) {
        now = timeAfter(wait, now);
        const runs = jobs.get(schedule.active ?? '');
        if (ends && runs !== undefined) runs.over = true;
        if (schedule.nextRunAt !== null) lastDecided = now;
        take(plan(schedule, occurrences, current(), now), dies);
        // Not on the second: what a person asks for is no occurrence.
        const triggered = trigger ? planTrigger(schedule, `s!${index}`, current(), timeAfter(7, now)) : null;
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
        fates: outcomesOf(calendar, {
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

    it('gives each occurrence a job, a pending run or a skip, and only allow lets two run at once [B10] [D13]', () => {
      fc.assert(
        fc.property(lives, (life) => {
          const { most } = live(life);
          if (life.overlap !== 'allow') assert.ok(most <= 1, `${most} at a time`);
        }),
        { seed: 20_260_101, numRuns: 500, endOnFailure: false },
      );
    });

    it('does the same up to its end with maxRuns [B10]', () => {
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

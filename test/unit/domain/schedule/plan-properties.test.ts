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
import { outcomesOf } from '../../../support/occurrence-outcomes.js';
import { timeAfter, START } from '../../../support/instants.js';
import { aPlanInput, runsOf, skipsOf } from '../../../support/factories/plan.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('plan', () => {
  /** Simulates a schedule: it is planned from time to time by processes that may crash before they execute the plan. */
  describe('over time', () => {
    interface Step {
      /** Milliseconds since the previous step. */
      wait: number;
      /** The active run ends before this step. */
      ends: boolean;
      /** The process crashes after storing its plan and before executing it. */
      crashes: boolean;
      trigger: boolean;
    }

    interface Scenario {
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
    const scenarios = fc.record<Scenario>({
      rule: fc.constantFrom<Rule[]>(
        { cron: '*/30 * * * * *', timezone: 'UTC' },
        { cron: '* * * * *', timezone: 'Asia/Kolkata' },
        { cron: '*/10 * * * *', timezone: 'UTC' },
        { every: 45 * SECOND, timezone: 'UTC' },
        { cron: '0 * * * *', timezone: 'UTC', endsAt: timeAfter(9 * HOUR) },
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
          crashes: fc.boolean(),
          trigger: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
        }),
        { minLength: 1, maxLength: 12 },
      ),
    });

    /** Fails unless each occurrence has exactly one outcome. Returns the maximum of concurrent jobs. */
    function simulate({ rule, overlap, misfire, maxRuns, steps }: Scenario): number {
      const occurrences = occurrencesOf(rule, START);
      const schedule = aPlanInput({ nextRunAt: occurrences.next(START), overlap, misfire, maxRuns });
      const jobs = new Map<string, { at: Date; hasEnded: boolean }>();
      const skips: PendingSkip[] = [];
      let now = START;
      let lastPlanned = START;
      let maxRunning = 0;
      const activeRun = (): ActiveRun | null => {
        const { active: id, pending } = schedule;
        if (id === null || overlap === 'allow') return null;
        const isPending = pending.some((entry) => entry.id === id);
        return jobs.get(id)?.hasEnded === false || (!jobs.has(id) && isPending)
          ? { id, since: START, hasStarted: jobs.has(id) }
          : null;
      };
      const store = (made: Plan, crashes: boolean): void => {
        const { cancel, ...fields } = made;
        Object.assign(schedule, fields);
        if (crashes) return;
        for (const entry of made.pending) {
          if (entry.kind === 'skip') skips.push(entry);
          else if (overlap === 'allow' || entry.id === made.active)
            jobs.set(entry.id, jobs.get(entry.id) ?? { at: entry.at, hasEnded: false });
        }
        schedule.pending = made.pending.filter(({ kind, id }) => kind === 'run' && !jobs.has(id));
        if (cancel !== null && jobs.has(cancel)) jobs.get(cancel)!.hasEnded = true;
      };
      for (const [index, { wait, ends, crashes, trigger }] of steps.entries()) {
        now = timeAfter(wait, now);
        const job = jobs.get(schedule.active ?? '');
        if (ends && job !== undefined) job.hasEnded = true;
        if (schedule.nextRunAt !== null) lastPlanned = now;
        store(plan(schedule, occurrences, activeRun(), now), crashes);
        // Seven milliseconds later, so that the triggered run is not at the instant of an occurrence.
        const triggered = trigger
          ? planTrigger(schedule, `s+${index}`, activeRun(), timeAfter(7, now))
          : null;
        if (triggered !== null) store(triggered, crashes);
        maxRunning = Math.max(maxRunning, [...jobs.values()].filter(({ hasEnded }) => !hasEnded).length);
      }
      const isOccurrence = (id: string): boolean => id.includes('@');
      const reachedMaxRuns = maxRuns !== null && schedule.runs >= maxRuns;
      const until = reachedMaxRuns ? schedule.lastRunAt! : lastPlanned;
      const calendar = instantsOf(rule, START, { from: START.getTime() + 1, to: until.getTime() });
      outcomesOf(calendar, {
        jobs: [...jobs].filter(([id]) => isOccurrence(id)).map(([, { at }]) => at),
        waiting: runsOf(schedule)
          .filter(({ id }) => isOccurrence(id))
          .map(({ at }) => at),
        // A triggered run that was replaced is not an occurrence.
        skips: [...skips, ...skipsOf(schedule)].filter(
          ({ at, reason }) => reason !== 'replaced' || calendar.includes(at.getTime()),
        ),
      });
      return maxRunning;
    }

    it('gives each occurrence a job, a pending run or a skip, and overlaps only with allow [B10] [D13]', () => {
      fc.assert(
        fc.property(scenarios, (scenario) => {
          const maxRunning = simulate(scenario);
          if (scenario.overlap !== 'allow') assert.ok(maxRunning <= 1, `${maxRunning} jobs at a time`);
        }),
        { seed: 20_260_101, numRuns: 500, endOnFailure: false },
      );
    });

    it('gives each occurrence an outcome until maxRuns is reached [B10]', () => {
      const limited = fc
        .tuple(scenarios, fc.integer({ min: 1, max: 8 }))
        .map(([scenario, maxRuns]) => ({ ...scenario, maxRuns }));
      fc.assert(
        fc.property(limited, (scenario) => {
          simulate(scenario);
        }),
        { seed: 20_260_101, numRuns: 200, endOnFailure: false },
      );
    });
  });
});

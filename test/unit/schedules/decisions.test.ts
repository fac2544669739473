import assert from 'node:assert/strict';
import type { JobDocument } from '../../../src/domain/job.js';
import { releasable } from '../../../src/domain/overlaps.js';
import type { Plan } from '../../../src/domain/plan.js';
import {
  jitterOf,
  occurrenceId,
  type OwedRun,
  type OwedSkip,
  type ScheduleDocument,
  type SkipDocument,
} from '../../../src/domain/schedule.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { Decisions, type Decided, type DecisionsParts } from '../../../src/schedules/decisions.js';
import { Fulfilment, type FulfilmentParts } from '../../../src/schedules/fulfilment.js';
import { jobOf } from '../../../src/schedules/job-of-run.js';
import { see } from '../../../src/schedules/seen-schedule.js';
import type { Run } from '../../../src/store/active-runs.js';
import type { BulkResult } from '../../../src/store/enqueue.js';
import { aJob } from '../../support/a-job.js';
import { aSchedule } from '../../support/calendar.js';
import { recordEvents } from '../../support/events.js';
import { after, START } from '../../support/instants.js';
import { ManualClock } from '../../support/manual-clock.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function run(hour: number): OwedRun {
  const at = after(hour * HOUR);
  return { kind: 'run', id: occurrenceId('s', at), at, since: at };
}

function skip(hour: number): OwedSkip {
  const at = after(hour * HOUR);
  return {
    ...{ kind: 'skip', id: occurrenceId('s', at), at, until: after(1, at), count: 1, reason: 'overlap' },
    ...{ activeId: null, runningFor: null, since: at },
  };
}

function decided(fields: Partial<ScheduleDocument>, cancel: string | null = null): Decided {
  const schedule = aSchedule(fields);
  const { nextRunAt, lastRunAt, runs, owed, active } = schedule;
  return { schedule, plan: { nextRunAt, lastRunAt, runs, owed, active, cancel } };
}

type Store = DecisionsParts['store'] & FulfilmentParts['store'];

describe('Decisions and their fulfilment', () => {
  let clock: ManualClock;
  let events: EventBus;
  let store: Store;
  let decisions: Decisions;
  let fulfilment: Fulfilment;
  let calls: string[];
  let inserted: JobDocument[];
  let recorded: SkipDocument[];
  let disabled: Partial<ScheduleDocument>[];
  let runs: Run[];
  let refused: Map<string, Error>;
  let refusedSkips: Map<string, Error>;
  let win: (ids: string[]) => string[];
  let insert: (jobs: readonly JobDocument[]) => BulkResult[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    [calls, inserted, recorded, disabled, runs] = [[], [], [], [], []];
    refused = new Map();
    refusedSkips = new Map();
    win = (ids) => ids;
    insert = (jobs) => jobs.map(({ _id: id }) => ({ id, duplicate: false }));
    store = {
      decideSchedules: async (_, list) => {
        calls.push(`decide ${list.map(({ schedule }) => schedule._id).join(' ')}`);
        return { won: new Set(win(list.map(({ schedule }) => schedule._id))), refused };
      },
      dropOwed: async (done) => {
        for (const { scheduleId, kind, ids } of done)
          calls.push(`drop ${kind} ${scheduleId}: ${ids.join(' ')}`);
      },
      enqueueMany: async (jobs) => {
        calls.push(`insert ${jobs.map(({ _id }) => _id).join(' ')}`);
        const results = insert(jobs);
        inserted.push(...jobs);
        return results;
      },
      recordSkips: async (skips) => {
        calls.push(`record ${skips.map(({ _id }) => _id).join(' ')}`);
        recorded.push(...skips);
        return refusedSkips;
      },
      findRuns: async (ids) => {
        calls.push(`find ${ids.join(' ')}`);
        return new Map(runs.filter(({ _id }) => ids.includes(_id)).map((one) => [one._id, one]));
      },
      changeSchedule: async ({ _id }, fields) => {
        calls.push(`change ${_id}`);
        disabled.push(fields);
        return true;
      },
    };
    decisions = new Decisions({ store, events });
    fulfilment = new Fulfilment({
      ...{ store, clock, events, skipRetention: HOUR },
      cancel: async (jobId, reason) => calls.push(`cancel ${jobId}: ${reason}`),
      nudge: () => calls.push('nudge'),
    });
  });

  describe('decide', () => {
    it('C7 one write for all of them; those that came to nothing are not written', async () => {
      clock.advance(HOUR);
      const schedules = [
        aSchedule({ _id: 'due' }),
        aSchedule({ _id: 'early', nextRunAt: after(2 * HOUR) }),
        aSchedule({ _id: 'due too' }),
      ];
      const { won, lost } = await decisions.decide(schedules, clock.now());
      assert.deepEqual(calls, ['decide due due too']);
      assert.deepEqual([won.map(({ schedule }) => schedule._id), lost], [['due', 'due too'], 0]);
    });

    it('B10 one that only waits for the current run is not written again and again', async () => {
      const waiting = aSchedule({
        overlap: 'queue',
        active: run(1).id,
        owed: [run(2)],
        nextRunAt: after(3 * HOUR),
      });
      runs = [aJob({ _id: run(1).id, status: 'RUNNING' })];
      await decisions.decide([waiting], after(2 * HOUR));
      assert.deepEqual(calls, [`find ${run(1).id}`]);
    });

    it('F3 those that others decided on first are lost, and that is said', async () => {
      const contended = recordEvents(events, 'schedule:contended');
      win = ([first]) => [first!];
      const schedules = ['a', 'b', 'c'].map((_id) => aSchedule({ _id }));
      const { won, lost } = await decisions.decide(schedules, after(HOUR));
      assert.deepEqual([won.map(({ schedule }) => schedule._id), lost], [['a'], 2]);
      assert.deepEqual(
        contended.map(({ event }) => event),
        [{ won: 1, lost: 2 }],
      );
    });

    it('F5 a rule that cannot be read disables its schedule, with the reason; the others are decided', async () => {
      const said = recordEvents(events, 'schedule:disabled');
      const bad = aSchedule({ _id: 'bad', rule: { cron: 'x', timezone: 'UTC' } });
      const { won } = await decisions.decide([bad, aSchedule({ _id: 'good' })], after(HOUR));
      assert.deepEqual(
        won.map(({ schedule }) => schedule._id),
        ['good'],
      );
      const [fields] = disabled;
      assert.deepEqual([fields?.isActive, fields?.updatedAt], [false, after(HOUR)]);
      assert.match(fields?.disabledReason ?? '', /cron expression 'x' is not valid/);
      assert.deepEqual(
        said.map(({ event }) => event),
        [{ scheduleId: 'bad', reason: fields?.disabledReason }],
      );
    });

    it('Y5 since when a run is running: its first start, else its start, else when it was made or decided', async () => {
      const id = run(1).id;
      const [createdAt, startedAt, firstStartedAt] = [after(1), after(2), after(3)];
      const since = async (job: Run | undefined, owed: OwedRun[] = []): Promise<Date | undefined> => {
        runs = job === undefined ? [] : [job];
        return (await see(store, [aSchedule({ active: id, owed })]))[0]?.active?.since;
      };
      const job = aJob({ _id: id, createdAt });
      assert.deepEqual(await since(job), createdAt);
      assert.deepEqual(await since({ ...job, status: 'RUNNING', startedAt }), startedAt);
      assert.deepEqual(await since({ ...job, startedAt, firstStartedAt }), firstStartedAt);
      assert.deepEqual(await since(undefined, [run(1)]), run(1).since);
      for (const status of ['COMPLETED', 'FAILED', 'CANCELLED'] as const)
        assert.equal(await since({ ...job, status }), undefined, status);
      assert.equal(await since(undefined), undefined, 'pruned');
    });
  });

  describe('carryOut', () => {
    it('C7 first the job, then the record, then off the list, last the cancel', async () => {
      const one = decided({ owed: [run(1), run(2), skip(3)], active: run(1).id, overlap: 'queue' }, 's@0');
      const made = await fulfilment.carryOut([one], after(HOUR));
      assert.deepEqual(calls, [
        `insert ${run(1).id}`,
        'nudge',
        `drop run s: ${run(1).id}`,
        `record ${skip(3).id}`,
        `drop skip s: ${skip(3).id}`,
        'cancel s@0: replaced by a newer run of its schedule',
      ]);
      assert.deepEqual(
        made.map(({ _id }) => _id),
        [run(1).id],
      );
    });

    it('F4 an insert that fails, or is refused: it stays on the list, and that is said', async () => {
      const troubles = recordEvents(events, 'worker:trouble');
      const one = decided({ owed: [run(1)], active: run(1).id });
      insert = ([first]) => [{ id: first!._id, error: new Error('refused') }];
      assert.deepEqual(await fulfilment.carryOut([one], after(HOUR)), []);
      assert.deepEqual(
        troubles.map(({ event }) => (event as { error: Error }).error.message),
        ['refused'],
      );
      insert = () => {
        throw new Error('no connection');
      };
      await assert.rejects(fulfilment.carryOut([one], after(HOUR)), { message: 'no connection' });
      assert.deepEqual(
        calls.filter((call) => !call.startsWith('insert')),
        [],
      );
    });

    it('J15 a job that exists already is no fault, and nobody else’s news', async () => {
      const due = recordEvents(events, 'schedule:due');
      insert = (jobs) => jobs.map(({ _id: id }, index) => ({ id, duplicate: index === 0 }));
      clock.advance(HOUR + 30);
      const one = decided({ owed: [run(0), run(1)], overlap: 'allow' });
      const made = await fulfilment.carryOut([one], clock.now());
      assert.deepEqual(
        made.map(({ _id }) => _id),
        [run(1).id],
      );
      assert.deepEqual(
        due.map(({ event }) => event),
        [{ scheduleId: 's', jobId: run(1).id, scheduledFor: after(HOUR), late: 30 }],
      );
      assert.ok(calls.includes(`drop run s: ${run(0).id} ${run(1).id}`));
    });

    it('D13 a skip is kept with all that is known of it, and said', async () => {
      const skipped = recordEvents(events, 'schedule:skipped');
      const entry: OwedSkip = { ...skip(1), activeId: 's@0', runningFor: 77 };
      await fulfilment.carryOut([decided({ owed: [entry] })], after(HOUR));
      const { kind: _, id, ...rest } = entry;
      assert.deepEqual(recorded, [
        { ...rest, _id: id, scheduleId: 's', expiresAt: after(HOUR, entry.since) },
      ]);
      assert.deepEqual(
        skipped.map(({ event }) => event),
        [
          {
            scheduleId: 's',
            from: entry.at,
            until: entry.until,
            count: 1,
            reason: 'overlap',
            runningFor: 77,
          },
        ],
      );
    });

    it('Y8 of many at once: one that the server refuses does not keep the others on the list', async () => {
      insert = (jobs) =>
        jobs.map(({ _id: id, schedule }) =>
          schedule === 'bad' ? { id, error: new Error('refused') } : { id, duplicate: false },
        );
      const list = ['a', 'bad', 'z'].map((_id) => {
        const owed = [{ ...run(1), id: occurrenceId(_id, after(HOUR)) }];
        return decided({ _id, owed, active: owed[0]!.id });
      });
      await fulfilment.carryOut(list, after(HOUR)).catch(() => undefined);
      assert.deepEqual(
        calls.filter((call) => call.startsWith('drop')),
        ['a', 'z'].map((id) => `drop run ${id}: ${occurrenceId(id, after(HOUR))}`),
      );
    });
  });

  describe('the job of an occurrence', () => {
    it('C7 is what the schedule says; its time is the schedule’s, however late it is made', () => {
      const schedule = aSchedule({
        taskType: 'report',
        queue: 'reports',
        priority: 3,
        payload: { a: 1 },
        retries: { max: 2 },
        timeout: 1000,
        maxRunningTime: 2000,
        userId: 'ada',
      });
      const { nonce, ...job } = jobOf(schedule, run(1), after(3 * HOUR));
      assert.ok(nonce.length > 0);
      const { nonce: _, ...expected } = aJob({
        ...{ _id: run(1).id, taskType: 'report', queue: 'reports', priority: 3, payload: { a: 1 } },
        ...{ retries: { max: 2 }, timeout: 1000, maxRunningTime: 2000, userId: 'ada' },
        ...{ schedule: 's', scheduledFor: after(HOUR), nextRunAt: after(HOUR), createdAt: after(3 * HOUR) },
      });
      assert.deepEqual(job, expected);
      assert.equal(jobOf(aSchedule(), run(1), START).queue, 'default');
    });

    it('B10 jitter: the same wherever it is computed, below its limit, spread evenly, none without', () => {
      const jitter = 10 * MINUTE;
      const delays = Array.from({ length: 2000 }, (_, index) => {
        const at = after(index * HOUR);
        const schedule = aSchedule({ jitter });
        const owed = { ...run(1), id: occurrenceId('s', at), at };
        const [first, second] = [jobOf(schedule, owed, START), jobOf(schedule, owed, after(HOUR))];
        assert.deepEqual(first.nextRunAt, second.nextRunAt);
        assert.deepEqual(first.scheduledFor, at);
        return first.nextRunAt.getTime() - at.getTime();
      });
      assert.ok(delays.every((delay) => Number.isInteger(delay) && delay >= 0 && delay < jitter));
      const tenths = Array.from(
        { length: 10 },
        (_, tenth) => delays.filter((delay) => Math.floor((delay * 10) / jitter) === tenth).length,
      );
      // 200 each, give or take five standard deviations.
      assert.ok(
        tenths.every((count) => Math.abs(count - 200) < 70),
        tenths.join(' '),
      );
      assert.equal(jitterOf('s@1', 0), 0);
      assert.notEqual(
        jitterOf('s@1', jitter),
        jitterOf('t@1', jitter),
        'schedules of one time are spread too',
      );
    });

    it('B10 released are all where they may overlap, otherwise the one whose turn it is', () => {
      const owed: Plan['owed'] = [run(1), skip(2), run(3)];
      const released = (overlap: ScheduleDocument['overlap'], active: string | null): string[] =>
        releasable({ overlap }, { owed, active }).map(({ id }) => id);
      assert.deepEqual(released('allow', null), [run(1).id, run(3).id]);
      for (const overlap of ['skip', 'queue', 'replace'] as const) {
        assert.deepEqual(released(overlap, run(3).id), [run(3).id]);
        assert.deepEqual(released(overlap, 's@0'), []);
        assert.deepEqual(released(overlap, skip(2).id), []);
        assert.deepEqual(released(overlap, null), []);
      }
    });
  });
});

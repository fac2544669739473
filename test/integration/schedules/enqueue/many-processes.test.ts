import assert from 'node:assert/strict';
import { calendar, checkSchedule, type Planned, planSchedules } from '../../../../scripts/chaos/calendar.js';
import { runChaos } from '../../../../scripts/chaos/run.js';
import { resolveSchedule } from '../../../../src/config/schedule-options.js';
import { hashOf, type SkipDocument } from '../../../../src/domain/schedule/schedule.js';
import { newSchedule } from '../../../../src/schedules/stored/schedule-document.js';
import { createStore, type Store } from '../../../../src/store/store.js';
import { aJob } from '../../../support/factories/job.js';
import { useDatabase } from '../../../support/database.js';
import { timeAfter, START } from '../../../support/instants.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { createEnqueuer } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;

describe('schedules in many processes', () => {
  const database = useDatabase();

  it('match the calendar in jobs and skips while three processes are killed, frozen and stopped at random [J15] [J19] [F3]', async () => {
    const report = await runChaos({ uri: database.uri, processes: 3, schedules: 20, seconds: 8, seed: 4 });
    assert.deepEqual(report.violations, []);
    const { jobs, completed, faults, contended, skips } = report;
    assert.ok(jobs > 50 && completed > 50, `${jobs} jobs, ${completed} completed`);
    assert.ok(faults.kills + faults.freezes + faults.stops > 0);
    // Two of the handlers take longer than a second.
    assert.ok((skips['overlap'] ?? 0) > 0);
    assert.ok(contended > 0, 'the processes never competed');
  }).timeout(120_000);
});

describe('a schedule that one query returns twice', () => {
  const database = useSharedDatabase();

  // The scan for due schedules follows nextRunAt, so it finds a schedule again if another process moves its nextRunAt
  // forward meanwhile. The plan of the older version conflicts, and that of the newer one is stored with the same token.
  it('is planned once: an occurrence that another process has skipped gets no job [J15] [F3]', async () => {
    const clock = new ManualClock();
    const store: Store = {
      ...createStore(database.stored),
      cancel: () => assert.fail('nothing is cancelled'),
    };
    const { schedules, jobs, skips } = database.collections;
    const rule = resolveSchedule({ cron: '* * * * * *' }, { timezone: 'UTC', symbols: new Map() }, 'test');
    const definition = { ...rule, taskType: 'report', payload: null };
    const current = aJob({ _id: `report@${START.toISOString()}`, status: 'RUNNING', schedule: 'report' });
    await jobs.insertOne(current);
    const stored = newSchedule('report', 'api', definition, hashOf(definition), clock.now());
    await schedules.insertOne({ ...stored, active: current._id });
    const older = (await schedules.findOne({ _id: 'report' }))!;

    clock.advance(SECOND);
    await createEnqueuer(store, clock).collect('all');
    assert.deepEqual(await skips.distinct('_id'), [`report@${timeAfter(SECOND).toISOString()}`]);
    const newer = (await schedules.findOne({ _id: 'report' }))!;
    await jobs.updateOne({ _id: current._id }, { $set: { status: 'COMPLETED', finishedAt: clock.now() } });

    clock.advance(SECOND);
    await createEnqueuer({ ...store, findDueSchedules: async () => [older, newer] }, clock).collect('all');
    assert.deepEqual(await jobs.distinct('_id'), [
      current._id,
      `report@${timeAfter(2 * SECOND).toISOString()}`,
    ]);
    assert.deepEqual(await skips.distinct('_id'), [`report@${timeAfter(SECOND).toISOString()}`]);
  });
});

describe('checkSchedule()', () => {
  const [, single] = planSchedules(2) as [Planned, Planned];
  const id = (seconds: number): string => `${single.name}@${timeAfter(seconds * SECOND).toISOString()}`;
  /** Planned up to the fifth second. */
  const schedule = {
    ...{ _id: single.name, createdAt: START, anchor: START, pending: [] },
    nextRunAt: timeAfter(6 * SECOND),
  };

  function job(second: number, takes = 10) {
    const scheduledFor = timeAfter(second * SECOND);
    const finishedAt = timeAfter(takes, scheduledFor);
    return {
      ...aJob({
        _id: id(second),
        status: 'COMPLETED',
        scheduledFor,
        finishedAt,
        firstStartedAt: scheduledFor,
      }),
      endedAt: finishedAt.getTime(),
    };
  }

  function skip(second: number, fields: Partial<SkipDocument> = {}): SkipDocument {
    const at = timeAfter(second * SECOND);
    return {
      _id: id(second),
      scheduleId: single.name,
      at,
      until: timeAfter(1, at),
      count: 1,
      reason: 'overlap',
      activeId: null,
      runningFor: null,
      since: at,
      expiresAt: at,
      ...fields,
    };
  }

  const jobs = [1, 2, 3, 4, 5].map((second) => job(second));

  it('accepts a job or a skip with a reason for every instant', () => {
    assert.deepEqual(checkSchedule(single, schedule, jobs, []), []);
    const long = [job(1, 2500), job(4), job(5)];
    assert.deepEqual(checkSchedule(single, schedule, long, [skip(2), skip(3)]), []);
    const missed = skip(1, { until: timeAfter(4 * SECOND), count: 3, reason: 'misfire' });
    assert.deepEqual(checkSchedule(single, schedule, [job(4), job(5)], [missed]), []);
  });

  it('finds missing, extra, duplicate and wrongly named jobs', () => {
    const [first, second, ...rest] = jobs;
    assert.match(checkSchedule(single, schedule, [first!, ...rest], []).join(), /00:00:02.000Z is missing/);
    assert.match(
      checkSchedule(single, schedule, [...jobs, job(6)], []).join(),
      /06.000Z is not in the calendar/,
    );
    assert.match(
      checkSchedule(single, schedule, [...jobs, job(1.5)], []).join(),
      /01.500Z is not in the calendar/,
    );
    assert.match(checkSchedule(single, schedule, jobs, [skip(3)]).join(), /03.000Z exists 2 times/);
    const renamed = { ...second!, _id: `${single.name}@${START.toISOString()}` };
    assert.match(
      checkSchedule(single, schedule, [first!, renamed, ...rest], []).join(),
      /has the occurrence/,
    );
  });

  it('finds skips without a reason, wrong counts, and overlapping runs of a single instance', () => {
    const others = [job(1), job(2), job(4), job(5)];
    assert.match(checkSchedule(single, schedule, others, [skip(3)]).join(), /no run of .* was unfinished/);
    const missed = skip(1, { until: timeAfter(4 * SECOND), count: 7, reason: 'misfire' });
    assert.match(
      checkSchedule(single, schedule, [job(4), job(5)], [missed]).join(),
      /wrong number of skips, 7,/,
    );
    const overlapping = [job(1, 1900), ...jobs.slice(1)];
    assert.match(checkSchedule(single, schedule, overlapping, []).join(), /started 900 ms before/);
    const allowed = { ...single, overlap: 'allow' } as const;
    assert.deepEqual(checkSchedule(allowed, schedule, overlapping, []), []);
    assert.match(checkSchedule(allowed, schedule, others, [skip(3)]).join(), /may overlap/);
  });

  it('has its own calendar of steps, of steps from an anchor, and of fixed seconds', () => {
    const seconds = (instants: readonly number[]): number[] =>
      instants.map((at) => (at - START.getTime()) / SECOND);
    const [from, to] = [START.getTime(), START.getTime() + 10 * SECOND];
    const call: [string] = ['unused'];
    assert.deepEqual(seconds(calendar({ kind: 'step', step: 3000, call }, 0, from, to)), [3, 6, 9]);
    assert.deepEqual(
      seconds(calendar({ kind: 'anchored', step: 2500, call }, from + 500, from, to)),
      [0.5, 3, 5.5, 8],
    );
    assert.deepEqual(seconds(calendar({ kind: 'seconds', seconds: [0, 1, 8], call }, 0, from, to)), [1, 8]);
  });
});

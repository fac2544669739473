import assert from 'node:assert/strict';
import { ManualClock } from '../../../support/manual-clock.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { timeAfter, START } from '../../../support/instants.js';
import { jobIdsOf, outcomesUntil, TAKEOVER_MS } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('manual runs', () => {
  const database = useSharedDatabase();

  describe('triggerSchedule()', () => {
    it('runs the schedule once now, in addition to its occurrences [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const seen: unknown[] = [];
      scheduler.registerHandler('work', (payload, { schedule, userId }) =>
        seen.push([payload, schedule, userId]),
      );
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        payload: 1,
        userId: 'ada',
      });
      const before = (await scheduler.getSchedule('s'))!;
      clock.advance(MINUTE);
      const result = await scheduler.triggerSchedule('s');
      assert.ok(result.triggered);
      assert.match(result.jobId, /^s\+[0-9a-f-]{36}$/);
      assert.equal(await scheduler.run(), 1);
      assert.deepEqual(seen, [[1, 's', 'ada']]);
      const { nextRunAt, lastRunAt, runs } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual(
        { nextRunAt, lastRunAt, runs },
        { nextRunAt: before.nextRunAt, lastRunAt: null, runs: 0 },
      );
      clock.advance(59 * MINUTE);
      assert.equal(await scheduler.run(), 1);
    });

    it('follows the overlap policy: it returns the active run instead of starting another [F1] [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const first = await scheduler.triggerSchedule('s');
      assert.ok(first.triggered);
      assert.deepEqual(await scheduler.triggerSchedule('s'), {
        triggered: false,
        reason: 'waiting',
        jobId: first.jobId,
      });
      // As if a worker had started it.
      const started = { status: 'RUNNING', startedAt: clock.now() } as const;
      await database.collections.jobs.updateOne({ _id: first.jobId }, { $set: started });
      clock.advance(MINUTE);
      assert.deepEqual(await scheduler.triggerSchedule('s'), {
        triggered: false,
        reason: 'running',
        jobId: first.jobId,
        runningFor: MINUTE,
      });
      // A triggered run counts as active: the next occurrence is skipped.
      clock.advance(59 * MINUTE);
      await scheduler.run();
      const [skip] = (await scheduler.getSkips('s')).items;
      assert.deepEqual([skip?.reason, skip?.activeId], ['overlap', first.jobId]);
    });

    it('returns the waiting run instead of starting another [F1] [Y5]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const misfire = { policy: 'all' } as const;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', misfire });
      clock.advance(2 * HOUR);
      await scheduler.run();
      await scheduler.cancel('s@2026-01-01T01:00:00.000Z');
      const result = await scheduler.triggerSchedule('s');
      assert.ok(!result.triggered && result.reason === 'waiting');
      assert.equal(result.jobId, 's@2026-01-01T02:00:00.000Z');
    });

    it('starts one run when ten callers trigger it at once [F1] [F3]', async () => {
      const clock = new ManualClock();
      const schedulers = Array.from({ length: 5 }, () => database.scheduler({ clock, lockTimeout: '1d' }));
      await schedulers[0]!.addSchedule({ id: 's', taskType: 'work', cron: '@daily' });
      const results = await Promise.all(
        Array.from({ length: 10 }, (_, index) => schedulers[index % 5]!.triggerSchedule('s')),
      );
      assert.equal(results.filter(({ triggered }) => triggered).length, 1);
      assert.equal((await jobIdsOf(database, 's')).length, 1);
    });

    it('works for a schedule that is paused or has ended [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '@daily',
        endsAt: '2026-01-01T00:00:00Z',
      });
      await scheduler.pauseSchedule('s');
      assert.equal((await scheduler.triggerSchedule('s')).triggered, true);
      assert.equal((await jobIdsOf(database, 's')).length, 1);
    });
  });

  describe('backfill()', () => {
    it('creates the missing jobs of past occurrences, both ends included [F1] [D13]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        overlap: 'allow',
        userId: 'ada',
      });
      clock.advance(2 * HOUR);
      await scheduler.run();
      const before = (await scheduler.getSchedule('s'))!;
      const result = await scheduler.backfill('s', '2025-12-31 21:00', '2026-01-01T02:00:00Z');
      assert.deepEqual(result, { occurrences: 6, existing: 2 });
      assert.equal((await jobIdsOf(database, 's')).length, 6);
      const job = await scheduler.getJob('s@2025-12-31T21:00:00.000Z');
      assert.deepEqual([job?.scheduledFor, job?.userId], [new Date('2025-12-31T21:00:00Z'), 'ada']);
      const { nextRunAt, lastRunAt, runs } = (await scheduler.getSchedule('s'))!;
      assert.deepEqual([nextRunAt, lastRunAt, runs], [before.nextRunAt, before.lastRunAt, before.runs]);
      const again = await scheduler.backfill('s', '2025-12-31 21:00', '2026-01-01T02:00:00Z');
      assert.deepEqual(again, { occurrences: 6, existing: 6 });
    });

    it('never includes future occurrences, accepts an empty span, and uses the time zone of the application [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database, { timezone: 'Asia/Tokyo' });
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap: 'allow' });
      clock.advance(90 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await scheduler.backfill('s', '2026-01-01 10:00', '2026-01-02'), {
        occurrences: 1,
        existing: 1,
      });
      assert.deepEqual(await scheduler.backfill('s', '2026-01-02', '2026-01-01'), {
        occurrences: 0,
        existing: 0,
      });
    });

    it('runs them one after another, oldest first, unless they may overlap [F1] [B10]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const order: Date[] = [];
      scheduler.registerHandler('work', (_, { scheduledFor }) => void order.push(scheduledFor!));
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *' });
      const result = await scheduler.backfill('s', timeAfter(-3 * HOUR), timeAfter(-HOUR));
      assert.deepEqual(
        [result, (await jobIdsOf(database, 's')).length],
        [{ occurrences: 3, existing: 0 }, 1],
      );
      for (let pass = 0; pass < 4; pass++) {
        await scheduler.run();
        clock.advance(TAKEOVER_MS);
      }
      assert.deepEqual(order, [timeAfter(-3 * HOUR), timeAfter(-2 * HOUR), timeAfter(-HOUR)]);
    });

    it('creates the jobs of occurrences that were missed and skipped [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const misfire = { policy: 'skip' } as const;
      await scheduler.addSchedule({
        id: 's',
        taskType: 'work',
        cron: '0 * * * *',
        misfire,
        overlap: 'allow',
      });
      clock.advance(2 * HOUR + 30 * MINUTE);
      await scheduler.run();
      assert.deepEqual(await jobIdsOf(database, 's'), []);
      assert.deepEqual(await scheduler.backfill('s', START, clock.now()), { occurrences: 3, existing: 0 });
      assert.equal((await jobIdsOf(database, 's')).length, 3);
    });

    for (const overlap of ['skip', 'queue', 'replace', 'allow'] as const) {
      it(`with overlap ${overlap} runs due occurrences that are not planned yet once and loses none [F1] [D13]`, async () => {
        const { scheduler, clock } = manualScheduler(database);
        scheduler.registerHandler('work', () => undefined);
        const misfire = { policy: 'all' } as const;
        await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '0 * * * *', overlap, misfire });
        clock.advance(3 * HOUR + 30 * SECOND);
        const result = await scheduler.backfill('s', timeAfter(1), clock.now());
        assert.deepEqual(result, { occurrences: 3, existing: 0 });
        for (let pass = 0; pass < 5; pass++) {
          await scheduler.run();
          clock.advance(TAKEOVER_MS);
        }
        assert.deepEqual(await outcomesUntil(database, clock.now()), ['job', 'job', 'job']);
      });
    }

    it('has a preview that counts the jobs and splits the span into parts that backfill() accepts [F1]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const { operations } = scheduler;
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '* * * * *', overlap: 'allow' });
      await scheduler.backfill('s', timeAfter(-9 * MINUTE), START);
      const preview = await operations.previewBackfill('s', timeAfter(-1200 * MINUTE), timeAfter(DAY));
      assert.deepEqual([preview.occurrences, preview.existing, preview.pieces.length], [1201, 10, 7]);
      const made = { occurrences: 0, existing: 0 };
      for (const { from, to } of preview.pieces) {
        const piece = await scheduler.backfill('s', from, to);
        made.occurrences += piece.occurrences;
        made.existing += piece.existing;
      }
      assert.deepEqual(made, { occurrences: 1201, existing: 10 });
      assert.equal(
        (await operations.previewBackfill('s', timeAfter(-1200 * MINUTE), clock.now())).existing,
        1201,
      );
      await assert.rejects(operations.previewBackfill('s', timeAfter(-20_000 * MINUTE), START), {
        code: 'INVALID_ARGUMENT',
        message: /at most 20000 jobs/,
      });
      await assert.rejects(operations.previewBackfill('nope', START, START), { code: 'SCHEDULE_NOT_FOUND' });
    });

    it('rejects spans of more than a thousand occurrences and invalid instants [F1]', async () => {
      const { scheduler } = manualScheduler(database);
      await scheduler.addSchedule({ id: 's', taskType: 'work', cron: '* * * * *', overlap: 'allow' });
      const result = await scheduler.backfill('s', timeAfter(-999 * MINUTE), START);
      assert.deepEqual(result, { occurrences: 1000, existing: 0 });
      await assert.rejects(scheduler.backfill('s', timeAfter(-1000 * MINUTE), START), {
        code: 'INVALID_ARGUMENT',
        message: /at most 1000 jobs/,
      });
      for (const bad of ['yesterday', 5, null, new Date(NaN), { $gt: 1 }])
        await assert.rejects(scheduler.backfill('s', bad as never, START), { code: 'INVALID_ARGUMENT' });
    });
  });
});

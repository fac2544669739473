import assert from 'node:assert/strict';
import type { Scheduler, SchedulerOptions } from '../../../../src/index.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { linesOf, recorder } from '../../../support/pass-reports.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

describe('the first pass of a fresh installation', () => {
  const database = useSharedDatabase();
  const ids = ['minutely@2026-01-01T08:30:00.000Z', 'daily@2026-01-01T08:30:00.000Z'];

  /** 20 seconds into the minute in which `minutely` and `daily` are due. */
  function inTheMinute(options: Partial<SchedulerOptions> = {}): {
    clock: ManualClock;
    scheduler: Scheduler;
    ran: string[];
  } {
    const clock = new ManualClock('2026-01-01T08:30:20Z');
    const scheduler = database.scheduler({ clock, lockTimeout: '1d', ...options });
    const { ran, note } = recorder();
    scheduler.schedule('minutely', note).everyMinute();
    scheduler.schedule('daily', note).dailyAt('08:30');
    scheduler.schedule('later', note).dailyAt('08:31');
    scheduler.schedule('interval', note).every('10s');
    scheduler.schedule('off', note).dailyAt('08:30').disable();
    return { clock, scheduler, ran };
  }

  it('runs what is due in the current minute, as its dry run says, and runs it once [Y1] [D11]', async () => {
    const { scheduler, ran } = inTheMinute();
    const dry = await scheduler.runOnce({ dryRun: true });
    const pass = await scheduler.runOnce();
    assert.deepEqual(linesOf(dry), linesOf(pass));
    assert.deepEqual(
      pass.entries.filter(({ result }) => result === 'run').map(({ jobId }) => jobId),
      ids,
    );
    await scheduler.runOnce();
    const restarted = inTheMinute();
    await restarted.scheduler.runOnce();
    assert.deepEqual([ran, restarted.ran], [ids, []]);
  });

  it('runs it once when several processes make their first pass at the same time [J19]', async () => {
    const processes = [inTheMinute(), inTheMinute(), inTheMinute()];
    await Promise.all(processes.map(({ scheduler }) => scheduler.runOnce()));
    assert.deepEqual(processes.flatMap(({ ran }) => ran).toSorted(), ids.toSorted());
  });

  it('runs only the last occurrence of the minute of a rule with seconds [Y1]', async () => {
    const { scheduler, ran } = inTheMinute();
    scheduler.schedule('secondly', (_, { id }) => void ran.push(id)).everySecond();
    await scheduler.runOnce();
    assert.deepEqual(
      ran.filter((id) => id.startsWith('secondly')),
      ['secondly@2026-01-01T08:30:20.000Z'],
    );
  });

  it('is not due for a worker that starts within the minute: its first occurrence is the next one', async () => {
    const { scheduler } = inTheMinute();
    await scheduler.start();
    assert.equal(
      (await scheduler.getSchedule('daily'))?.nextRunAt?.toISOString(),
      '2026-01-02T08:30:00.000Z',
    );
    await scheduler.stop();
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });
});

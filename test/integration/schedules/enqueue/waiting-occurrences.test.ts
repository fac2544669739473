import assert from 'node:assert/strict';
import type { SchedulerEvents, SchedulerOptions } from '../../../../src/index.js';
import { nextEvent, recordEvents } from '../../../support/events.js';
import { timeAfter } from '../../../support/instants.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;

describe('an occurrence that no worker starts', () => {
  const database = useSharedDatabase();
  const FIRST = `report@${timeAfter(MINUTE).toISOString()}`;

  /** A process that serves only the queue `default`, after it created the first occurrence of `report` in another queue. */
  async function enqueueFirst(
    maxRunningTime?: string,
    options: Partial<SchedulerOptions> = {},
  ): Promise<ReturnType<typeof manualScheduler>> {
    const made = manualScheduler(database, options);
    const report = made.scheduler
      .schedule('report', () => undefined)
      .everyMinute()
      .queue('reports');
    if (maxRunningTime !== undefined) report.maxRunningTime(maxRunningTime);
    await made.scheduler.run();
    made.clock.advance(MINUTE);
    await made.scheduler.run();
    return made;
  }

  it('is waiting, not running, when the next one is skipped [Y5]', async () => {
    const lines: string[] = [];
    const log = (_: object, line: string): void => void lines.push(line);
    const logger = { debug: log, info: log, warn: log, error: log };
    const { scheduler, clock } = await enqueueFirst(undefined, { logger });
    clock.advance(MINUTE);
    await scheduler.run();
    const { items } = await scheduler.getSkips('report');
    assert.deepEqual(
      items.map(({ activeId, runningFor }) => [activeId, runningFor]),
      [[FIRST, null]],
    );
    assert.ok(
      lines.includes(
        `report: skipped the run of ${timeAfter(2 * MINUTE).toISOString()}, the previous one is waiting to start`,
      ),
      lines.join('\n'),
    );
    const skipped = await scheduler.operations.explainJob(`report@${timeAfter(2 * MINUTE).toISOString()}`);
    assert.ok(skipped?.sentence.endsWith(`${FIRST} was waiting to start.`), skipped?.sentence);
    assert.deepEqual(await scheduler.triggerSchedule('report'), {
      triggered: false,
      reason: 'waiting',
      jobId: FIRST,
    });
  });

  it('ends expired after maxRunningTime, and the schedule continues [B24]', async () => {
    const { scheduler, clock } = await enqueueFirst('90s');
    const expired = nextEvent(scheduler, 'job:expired');
    clock.advance(2 * MINUTE);
    await scheduler.run();
    assert.equal((await expired).jobId, FIRST);
    const job = await scheduler.getJob(FIRST);
    assert.deepEqual([job?.status, job?.state], ['CANCELLED', 'expired']);
    assert.equal((await scheduler.getJob(`report@${timeAfter(2 * MINUTE).toISOString()}`))?.state, 'waiting');
  });

  it('counts maxRunningTime from its creation if it is late, and never for a triggered run [B24]', async () => {
    const { scheduler, clock } = manualScheduler(database);
    const ran: string[] = [];
    const note = (_: unknown, { id }: { id: string }): void => void ran.push(id);
    scheduler.schedule('late', note).hourly().maxRunningTime('10m');
    await scheduler.run();
    clock.advance(90 * MINUTE);
    await scheduler.run();
    assert.deepEqual(ran, [`late@${timeAfter(60 * MINUTE).toISOString()}`]);
    const triggered = await scheduler.triggerSchedule('late');
    assert.ok(triggered.triggered);
    clock.advance(11 * MINUTE);
    await scheduler.run();
    assert.equal(ran.at(-1), triggered.jobId);
  });

  it('is announced by workers of its definition, and by doctor, while no live worker serves its queue', async () => {
    const { scheduler, clock } = manualScheduler(database, { heartbeatInterval: '10s' });
    scheduler
      .schedule('report', () => undefined)
      .everyMinute()
      .queue('reports');
    scheduler.schedule('served', () => undefined).everyMinute();
    const unserved = recordEvents(scheduler, 'schedule:unserved');
    await scheduler.start();
    const announced = nextEvent(scheduler, 'schedule:unserved');
    clock.advance(MINUTE);
    assert.deepEqual(await announced, {
      scheduleId: 'report',
      queue: 'reports',
    } satisfies SchedulerEvents['schedule:unserved']);
    assert.equal(unserved.length, 1);
    const findings = await scheduler.operations.doctor();
    const finding = findings.find(({ check }) => check === 'scheduleQueues');
    assert.equal(finding?.level, 'warning');
    assert.match(finding?.finding ?? '', /report in reports/);
    assert.doesNotMatch(finding?.finding ?? '', /served in/);
  });
});

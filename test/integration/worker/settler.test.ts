import assert from 'node:assert/strict';
import { countEvents, recordEvents } from '../../support/events.js';
import { withFailPoint } from '../../support/fail-point.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('settling', () => {
  const database = useSharedDatabase();

  /** Two jobs in one slot, while the server takes its time to write outcomes. */
  async function order(settle: 'batched' | 'immediate'): Promise<string[]> {
    const scheduler = database.scheduler({ concurrency: 1 });
    scheduler.registerHandler('work', () => undefined, { settle });
    await scheduler.dispatchMany([
      { taskType: 'work', options: { key: 'first' } },
      { taskType: 'work', options: { key: 'second' } },
    ]);
    const events = recordEvents(scheduler, 'job:start', 'job:complete');
    const done = countEvents(scheduler, 'job:complete', 2);
    await withFailPoint(database, { commands: ['update'], how: 200 }, async () => {
      await scheduler.start();
      await done;
    });
    return events.map(({ name, event }) => `${name} ${(event as { jobId: string }).jobId}`);
  }

  it('lets the next job start while an outcome is being written [B3]', async () => {
    // Which of the two is written first is nobody's business.
    assert.deepEqual((await order('batched')).slice(0, 2), ['job:start work#first', 'job:start work#second']);
  });

  it('with settle: immediate writes the outcome before the next job starts', async () => {
    assert.deepEqual(await order('immediate'), [
      'job:start work#first',
      'job:complete work#first',
      'job:start work#second',
      'job:complete work#second',
    ]);
  });

  it('with settle: immediate runs a pass over many jobs with one slot', async () => {
    const scheduler = database.scheduler({ concurrency: 1 });
    scheduler.registerHandler('work', () => undefined, { settle: 'immediate' });
    await scheduler.dispatchMany(Array.from({ length: 5 }, () => ({ taskType: 'work' })));
    assert.equal(await scheduler.run(), 5);
  });
});

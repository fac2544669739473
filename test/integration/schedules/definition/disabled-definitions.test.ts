import assert from 'node:assert/strict';
import type { Scheduler } from '../../../../src/index.js';
import { linesOf } from '../../../support/pass-reports.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;
const BROKEN = {
  'a command that is not registered': (scheduler) =>
    scheduler.define('command', 'app:missing').named('broken').everyMinute(),
  'a task type without a handler': (scheduler) => scheduler.define('missing').named('broken').everyMinute(),
  'a rule that never matches': (scheduler) =>
    scheduler.schedule('broken', () => undefined).cron('0 0 30 2 *'),
} satisfies Record<string, (scheduler: Scheduler) => unknown>;

describe('a disabled definition', () => {
  const database = useSharedDatabase();

  for (const [what, define] of Object.entries(BROKEN)) {
    it(`with ${what} is skipped and does not stop the others in a pass [D7]`, async () => {
      const { scheduler, clock } = manualScheduler(database);
      define(scheduler).disable();
      scheduler.schedule('healthy', () => undefined).everyMinute();
      await scheduler.runOnce();
      clock.advance(MINUTE);
      assert.deepEqual(linesOf(await scheduler.runOnce()), [
        ['broken', 'skipped', 'disabled'],
        ['healthy', 'run', null],
      ]);
    });

    it(`with ${what} does not stop a worker [D7]`, async () => {
      const { scheduler, clock } = manualScheduler(database);
      define(scheduler).disable();
      scheduler.schedule('healthy', () => undefined).everyMinute();
      await scheduler.start();
      await scheduler.stop();
      clock.advance(MINUTE);
      assert.equal(await scheduler.run(), 1);
    });

    it(`with ${what} is an error when it is enabled [D5] [D7]`, async () => {
      const { scheduler } = manualScheduler(database);
      define(scheduler).disable().enabled();
      await assert.rejects(scheduler.start(), /broken/);
    });
  }
});

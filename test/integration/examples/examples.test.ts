import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as handlers from '../../../examples/handlers.js';
import register from '../../../examples/schedules.js';
import type { Scheduler } from '../../../src/index.js';
import { manualScheduler, withoutRenewalThread } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('the examples', () => {
  const database = useSharedDatabase();

  function worker(): Scheduler {
    return database.scheduler({ ...withoutRenewalThread, taskHandlers: { ...handlers } });
  }

  it('have handlers that all run [C14]', async () => {
    const scheduler = worker();
    await scheduler.start();
    const retries = { base: 0 };
    // First, so that it runs well before the kettle is hot, even on a slow machine.
    const readyAt = new Date(Date.now() + 4000).toISOString();
    const runs = {
      brewTea: await scheduler.dispatch('brewTea', { readyAt }),
      sendEmail: await scheduler.dispatch('sendEmail', { to: 'ada@example.org', subject: 'Welcome' }),
      generateReport: await scheduler.dispatch('generateReport', { name: 'November', pages: 2 }),
      callFlakyService: await scheduler.dispatch('callFlakyService', { failures: 2 }, { retries }),
      ChargeCard: await scheduler.dispatch(handlers.ChargeCard, { amount: 42 }),
    };
    assert.deepEqual(Object.keys(runs).sort(), Object.keys(handlers).sort());
    const results: Record<string, unknown> = {};
    for (const [name, handle] of Object.entries(runs)) {
      const job = await handle.wait({ timeout: '60s' });
      assert.equal(job.status, 'COMPLETED', name);
      results[name] = job.result;
    }
    assert.deepEqual(results, {
      sendEmail: { sent: true, to: 'ada@example.org' },
      generateReport: { name: 'November', pages: 2 },
      callFlakyService: { attempts: 3 },
      brewTea: { tea: 'ready' },
      ChargeCard: { charged: 42, fence: 1 },
    });
    const report = await scheduler.getJob(runs.generateReport.id);
    assert.deepEqual([report?.progress?.value, report?.progress?.note], [100, 'page 2 of 2']);
    const tea = await scheduler.getExecutions(runs.brewTea.id);
    assert.equal(tea[0]?.outcome, 'snoozed');
    assert.match(tea[0].log[0]!, /the kettle needs \d+ ms more/);
  });

  it('dispatch sample jobs whose task types all have a handler [C14]', async () => {
    const env = { ...process.env, MONGODB_URI: database.uri };
    const child = spawn(process.execPath, ['--import', 'tsx', 'examples/sample-jobs.ts'], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = (await once(child, 'exit')) as [number];
    assert.equal(code, 0);
    const { jobs } = database.collections;
    assert.ok((await jobs.countDocuments()) >= 7);
    const known = new Set(Object.keys(handlers));
    for (const type of await jobs.distinct('taskType')) assert.ok(known.has(type), type);

    const scheduler = worker();
    // Some attempts fail on purpose, and are retried later.
    while ((await scheduler.run()) > 0);
    assert.equal(await jobs.countDocuments({ status: 'FAILED' }), 0);
    assert.ok((await jobs.countDocuments({ status: 'COMPLETED' })) >= 4);
  });

  it('have schedules that run, at 01:00 in the order of their dependencies [C7] [D2]', async () => {
    const { clock, scheduler } = manualScheduler(database);
    register(scheduler);
    assert.deepEqual(scheduler.getExecutionOrder().slice(-4), [
      'extract',
      'transform',
      'load',
      'rebuild-index',
    ]);
    await scheduler.runOnce();
    clock.advance(3_600_000);
    const { entries, failed } = await scheduler.runOnce();
    const ran = entries.filter(({ result }) => result === 'run').map(({ name }) => name);
    assert.deepEqual(ran.slice(-3), ['extract', 'transform', 'load']);
    assert.ok(ran.includes('heartbeat'));
    assert.equal(failed, 0);

    const due = await scheduler.runOnce({ at: '2026-01-05 08:30', dryRun: true });
    assert.deepEqual(
      due.entries.filter(({ result }) => result !== 'skipped').map(({ name }) => name),
      ['heartbeat', 'sync-orders'],
    );
    const handle = await scheduler.dispatch('rebuild-index');
    await scheduler.run();
    assert.deepEqual((await handle.wait()).result, { rebuilt: 'everything' });
  });
});

import assert from 'node:assert/strict';
import { CommandProcess, killCommands } from '../../support/chronos-command.js';
import { useDatabase } from '../../support/database.js';
import { waitUntil } from '../../support/wait-until.js';

describe('npm start', () => {
  const db = useDatabase();
  afterEach(killCommands);

  const start = (env: Record<string, string>): CommandProcess =>
    new CommandProcess([], env, ['--import', 'tsx', 'scripts/start.ts']);

  it('dispatches the sample jobs, runs them with the example handlers and stops cleanly [C14]', async () => {
    const command = start({ MONGODB_URI: db.uri });
    await waitUntil(
      'every sample job is completed',
      async () => (await db.collections.jobs.countDocuments({ status: 'COMPLETED', schedule: null })) === 7,
    );
    assert.equal((await db.collections.schedules.findOne({ _id: 'heartbeat' }))?.isActive, true);
    command.signal('SIGTERM');
    assert.equal(await command.exited, 0);
    for (const line of [
      /worker running/,
      /sendEmail completed in \d+ ms/,
      /callFlakyService failed \(attempt 1\), next attempt at/,
      /brewTea snoozed/,
      /worker stopped/,
    ]) {
      assert.match(command.output, line);
    }
    assert.doesNotMatch(command.output, /"level":/);
  });

  it('can be joined by another worker: `npm run worker` needs only MONGODB_URI', async () => {
    const command = new CommandProcess([], { MONGODB_URI: db.uri }, ['scripts/worker.mjs']);
    const handle = await db.scheduler().dispatch('ChargeCard', { amount: 1 });
    assert.equal((await handle.wait({ timeout: '60s' })).status, 'COMPLETED');
    command.signal('SIGTERM');
    assert.equal(await command.exited, 0);
  });

  it('never starts the embedded MongoDB in production, and asks for MONGODB_URI', async () => {
    const command = start({ NODE_ENV: 'production' });
    assert.notEqual(await command.exited, 0);
    assert.match(command.output, /not for production: set MONGODB_URI/);
  });
});

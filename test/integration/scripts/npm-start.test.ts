import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { useDatabase } from '../../support/database.js';
import { waitUntil } from '../../support/wait-until.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

describe('npm start', () => {
  const db = useDatabase();
  let children: ChildProcess[] = [];

  function run(args: string[], env: Record<string, string>): { child: ChildProcess; output: () => string } {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    children.push(child);
    return { child, output: () => text };
  }

  afterEach(() => {
    for (const child of children) child.kill('SIGKILL');
    children = [];
  });

  it('dispatches the sample jobs, runs them with the example handlers and stops cleanly [C14]', async () => {
    const { child, output } = run(['--import', 'tsx', 'scripts/start.ts'], { MONGODB_URI: db.uri });
    await waitUntil(
      'every sample job is completed',
      async () => (await db.collections.jobs.countDocuments({ status: 'COMPLETED', schedule: null })) === 7,
    );
    assert.equal((await db.collections.schedules.findOne({ _id: 'heartbeat' }))?.isActive, true);
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number | null];
    assert.equal(code, 0);
    for (const line of [
      /worker running/,
      /sendEmail completed in \d+ ms/,
      /callFlakyService failed \(attempt 1\), next attempt at/,
      /brewTea snoozed/,
      /worker stopped/,
    ]) {
      assert.match(output(), line);
    }
    assert.doesNotMatch(output(), /"level":/);
  });

  it('gets another replica with `npm run worker` and only MONGODB_URI', async () => {
    const { child } = run(['scripts/worker.mjs'], { MONGODB_URI: db.uri });
    const handle = await db.scheduler().dispatch('ChargeCard', { amount: 1 });
    assert.equal((await handle.wait({ timeout: '15s' })).status, 'COMPLETED');
    child.kill('SIGTERM');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  it('never starts the embedded MongoDB in production, and says what to do instead', async () => {
    const { child, output } = run(['--import', 'tsx', 'scripts/start.ts'], { NODE_ENV: 'production' });
    const [code] = (await once(child, 'exit')) as [number | null];
    assert.notEqual(code, 0);
    assert.match(output(), /not for production: set MONGODB_URI/);
  });
});

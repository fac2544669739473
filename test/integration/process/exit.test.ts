import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { useDatabase } from '../../support/database.js';

describe('a program that uses the library', () => {
  const db = useDatabase();

  it('exits by itself after stop(): no timer, socket, thread or lock is left [C12]', async () => {
    const program = spawn(process.execPath, ['test/fixtures/whole-life.mjs'], {
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      env: { PATH: process.env['PATH'], MONGODB_URI: db.uri },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    program.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(program, 'exit')) as [number | null];
    assert.equal(code, 0);
    const { stoppedAt, exitAt, status } = JSON.parse(output) as {
      stoppedAt: number;
      exitAt: number;
      status: string;
    };
    assert.equal(status, 'COMPLETED');
    assert.ok(exitAt - stoppedAt < 500, `the event loop went on for ${exitAt - stoppedAt} ms after stop()`);
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ROOT } from '../../support/chronos-command.js';
import { useDatabase } from '../../support/database.js';

describe('a program that uses the library', () => {
  const db = useDatabase();

  it('exits by itself after stop(): no timer, socket, thread or lock is left [C12]', async () => {
    // Rejects unless the program exits with 0.
    const { stdout } = await promisify(execFile)(process.execPath, ['test/fixtures/whole-life.mjs'], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], MONGODB_URI: db.uri },
    });
    assert.deepEqual(JSON.parse(stdout), { status: 'COMPLETED', leftOpen: [] });
    assert.equal(await db.collections.jobs.countDocuments({ lockToken: { $ne: null } }), 0);
  });
});

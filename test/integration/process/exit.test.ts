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

  it('sees a warning for an attempt that is retried and an error for a dead job, without a listener', async () => {
    const { stdout: id, stderr } = await promisify(execFile)(
      process.execPath,
      ['test/fixtures/failing-job.mjs'],
      { cwd: ROOT, env: { PATH: process.env['PATH'], MONGODB_URI: db.uri } },
    );
    const [warning = '', error = '', frame = ''] = stderr.split('\n');
    assert.match(
      warning,
      /^chronos: chargeCard failed \(attempt 1\), next attempt at \S+: card declined {2}\[\w+\]$/,
    );
    assert.equal(error, `chronos: chargeCard failed for good (attempt 2): card declined  [${id}]`);
    assert.match(frame, /^ {4}at .*charge .*failing-job\.mjs/);
  });
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseShellPayload, runShell } from '../../../../src/handlers/built-in/shell.js';
import { waitUntil } from '../../../support/wait-until.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { isDead, pidsIn } from '../../../support/handlers/processes.js';

const reason = new Error('cancelled');

describe('runShell after an abort [D2]', () => {
  let directory: string;
  let pids: string;

  beforeEach(async () => {
    directory = await mkdtemp(path.join(tmpdir(), 'chronos-abort-'));
    pids = path.join(directory, 'pids');
  });
  afterEach(() => rm(directory, { recursive: true }));

  /** Aborts as soon as `count` processes have written their ids; gives these and the milliseconds it took to end. */
  async function abort(shell: string, count: number): Promise<{ dead: number[]; took: number }> {
    const control = new AbortController();
    const command = parseShellPayload({ shell, cwd: directory });
    const running = runShell(command, aJobContext({ signal: control.signal }), { PATH: process.env['PATH'] });
    const dead = await pidsIn(pids, count);
    const begin = performance.now();
    control.abort(reason);
    await assert.rejects(running, reason);
    return { dead, took: performance.now() - begin };
  }

  async function assertDead(pids: number[]): Promise<void> {
    for (const pid of pids) assert.ok(await isDead(pid), `process ${pid} lives`);
  }

  it('sends SIGTERM to the whole group and ends as soon as that has ended', async () => {
    const { dead, took } = await abort(
      'sleep 300 & echo $! >> pids; sh -c "echo \\$\\$ >> pids; sleep 300; :"',
      2,
    );
    await assertDead(dead);
    assert.ok(took < 1500, `took ${took} ms`);
  });

  it('gives a command time to clean up', async () => {
    const { dead } = await abort(
      `trap 'sleep 0.3; echo cleaned >> done; exit 0' TERM; echo $$ >> pids; while :; do sleep 0.05; done`,
      1,
    );
    await assertDead(dead);
    assert.deepEqual(await pidsIn(path.join(directory, 'done'), 1), [NaN]);
  });

  it('kills children and grandchildren that ignore SIGTERM after two seconds', async () => {
    const deaf = `trap "" TERM; echo $$ >> pids;`;
    const { dead, took } = await abort(
      `${deaf} sh -c '${deaf} sh -c "trap \\"\\" TERM; echo \\$\\$ >> pids; while :; do sleep 1; done" & wait' & while :; do sleep 1; done`,
      3,
    );
    await assertDead(dead);
    assert.ok(took >= 1900 && took < 4000, `took ${took} ms`);
  });

  it('kills a grandchild that ignores SIGTERM when its parent has ended', async () => {
    const { dead, took } = await abort(
      `sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' & echo $$ >> pids; wait`,
      2,
    );
    await assertDead(dead);
    assert.ok(took >= 1900, `took ${took} ms`);
  });

  it('does not wait for pipes of a process outside of the group', async () => {
    const { dead, took } = await abort('setsid sh -c "echo \\$\\$ >> pids; exec sleep 300" & wait', 1);
    assert.ok(took < 1500, `took ${took} ms`);
    process.kill(dead[0]!, 'SIGKILL');
  });

  it('stops a flood of output', async () => {
    const { dead, took } = await abort('echo $$ >> pids; yes', 1);
    await assertDead(dead);
    assert.ok(took < 1500, `took ${took} ms`);
  });

  it('ends the group when the worker exits', async () => {
    const fixture = fileURLToPath(new URL('../../../support/handlers/exits-early.ts', import.meta.url));
    const worker = spawn(process.execPath, ['--import', 'tsx', fixture, directory], { stdio: 'inherit' });
    await once(worker, 'exit');
    const left = await pidsIn(pids, 2);
    await waitUntil('the group is dead', async () => (await Promise.all(left.map(isDead))).every(Boolean));
  });
});

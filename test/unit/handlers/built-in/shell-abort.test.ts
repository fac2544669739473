import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseShellPayload, runShell } from '../../../../src/handlers/built-in/shell.js';
import { monotonic, systemClock } from '../../../../src/runtime/system-clock.js';
import { waitUntil } from '../../../support/wait-until.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { isDead, pidsIn } from '../../../support/handlers/processes.js';

const reason = new Error('cancelled');

describe('runShell after an abort [D2]', () => {
  let directory: string;
  let pids: string;
  /** Time limits are measured in this time, which only the tests advance: a busy machine does not exceed them. */
  let elapsed: number;
  let checks: number;

  beforeEach(async () => {
    [elapsed, checks] = [0, 0];
    systemClock.monotonic = () => (checks++, elapsed);
    directory = await mkdtemp(path.join(tmpdir(), 'chronos-abort-'));
    pids = path.join(directory, 'pids');
  });
  afterEach(() => {
    systemClock.monotonic = monotonic;
    return rm(directory, { recursive: true });
  });

  /** Starts the command and aborts its job as soon as `count` processes have written their ids. */
  async function abort(shell: string, count: number): Promise<{ started: number[]; ended: Promise<void> }> {
    const control = new AbortController();
    const command = parseShellPayload({ shell, cwd: directory });
    const running = runShell(command, aJobContext({ signal: control.signal }), {
      PATH: process.env['PATH'] ?? '',
    });
    const started = await pidsIn(pids, count);
    control.abort(reason);
    return { started, ended: assert.rejects(running, reason) };
  }

  async function assertDead(processes: number[]): Promise<void> {
    for (const pid of processes) assert.ok(await isDead(pid), `process ${pid} is alive`);
  }

  /** Waits until the group was checked a few times more. */
  async function moreChecks(): Promise<void> {
    const before = checks;
    await waitUntil('the group was checked again', async () => checks > before + 3);
  }

  it('sends SIGTERM to the whole group and ends as soon as all processes have ended', async () => {
    const { started, ended } = await abort(
      'sleep 300 & echo $! >> pids; sh -c "echo \\$\\$ >> pids; sleep 300; :"',
      2,
    );
    await ended;
    await assertDead(started);
  });

  it('gives a command time to clean up', async () => {
    const { started, ended } = await abort(
      `trap 'sleep 0.3; echo cleaned >> done; exit 0' TERM; echo $$ >> pids; while :; do sleep 0.05; done`,
      1,
    );
    await ended;
    await assertDead(started);
    assert.equal(await readFile(path.join(directory, 'done'), 'utf8'), 'cleaned\n');
  });

  it('kills children and grandchildren that ignore SIGTERM after two seconds', async () => {
    const ignoring = `trap "" TERM; echo $$ >> pids;`;
    const { started, ended } = await abort(
      `${ignoring} sh -c '${ignoring} sh -c "trap \\"\\" TERM; echo \\$\\$ >> pids; while :; do sleep 1; done" & wait' & while :; do sleep 1; done`,
      3,
    );
    await moreChecks();
    elapsed = 1999;
    await moreChecks();
    for (const pid of started) assert.equal(await isDead(pid), false, `process ${pid} is dead`);
    elapsed = 2000;
    await ended;
    await assertDead(started);
  });

  it('kills a grandchild that ignores SIGTERM when its parent has ended', async () => {
    const { started, ended } = await abort(
      `sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' & echo $$ >> pids; wait`,
      2,
    );
    const countDead = async (): Promise<number> =>
      (await Promise.all(started.map(isDead))).filter(Boolean).length;
    await waitUntil('the parent has ended', async () => (await countDead()) === 1);
    elapsed = 1999;
    await moreChecks();
    assert.equal(await countDead(), 1);
    elapsed = 2000;
    await ended;
    await assertDead(started);
  });

  it('does not wait for pipes of a process outside of the group', async () => {
    const { started, ended } = await abort('setsid sh -c "echo \\$\\$ >> pids; exec sleep 300" & wait', 1);
    await ended;
    process.kill(started[0]!, 'SIGKILL');
  });

  it('stops a flood of output', async () => {
    const { started, ended } = await abort('echo $$ >> pids; yes', 1);
    await ended;
    await assertDead(started);
  });

  it('ends the group when the worker exits', async () => {
    const fixture = fileURLToPath(new URL('../../../support/handlers/exits-early.ts', import.meta.url));
    const worker = spawn(process.execPath, ['--import', 'tsx', fixture, directory], { stdio: 'inherit' });
    await once(worker, 'exit');
    const started = await pidsIn(pids, 2);
    await waitUntil('the group is dead', async () => (await Promise.all(started.map(isDead))).every(Boolean));
  });
});

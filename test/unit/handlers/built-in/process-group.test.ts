import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hasOnlyZombies } from '../../../../src/handlers/built-in/process-group.js';
import { waitUntil } from '../../../support/wait-until.js';

describe('hasOnlyZombies [D2]', () => {
  let parent: ChildProcess;
  before(function () {
    if (process.platform !== 'linux') this.skip();
  });
  afterEach(async () => {
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  });

  /** Starts a parent that never reaps its child, which leads a process group. Returns the id of that group. */
  async function startGroup(child: string): Promise<number> {
    parent = spawn('/bin/sh', ['-c', `setsid ${child} & echo $!; exec sleep 300`], { detached: true });
    const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
    return Number(line);
  }

  it('is true for a group whose members are all dead', async () => {
    const group = await startGroup('true');
    await waitUntil('the child is a zombie', () => hasOnlyZombies(group));
    assert.doesNotThrow(() => process.kill(-group, 0), 'kill() still finds the group');
  });

  it('is false while a member is alive, and for a group without members', async () => {
    const group = await startGroup('sleep 300');
    await waitUntil('the group exists', async () => {
      try {
        return process.kill(-group, 0);
      } catch {
        return false;
      }
    });
    assert.equal(await hasOnlyZombies(group), false);
    process.kill(-group, 'SIGKILL');
    await waitUntil('the child is a zombie', () => hasOnlyZombies(group));
    assert.equal(await hasOnlyZombies(2 ** 22 + 1), false);
  });
});

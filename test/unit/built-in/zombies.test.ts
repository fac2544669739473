import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { onlyZombies } from '../../../src/built-in/zombies.js';
import { until } from '../../support/until.js';

describe('D2 onlyZombies', () => {
  let parent: ChildProcess;
  before(function () {
    if (process.platform !== 'linux') this.skip();
  });
  afterEach(async () => {
    parent.kill('SIGKILL');
    await once(parent, 'exit');
  });

  /** Starts a parent that collects nobody, with one child that leads a group; gives the id of that group. */
  async function groupOf(child: string): Promise<number> {
    parent = spawn('/bin/sh', ['-c', `setsid ${child} & echo $!; exec sleep 300`], { detached: true });
    const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
    return Number(line);
  }

  it('is true for a group whose members are all dead', async () => {
    const group = await groupOf('true');
    await until('the child is a zombie', () => onlyZombies(group));
    assert.doesNotThrow(() => process.kill(-group, 0), 'to kill it looks alive');
  });

  it('is false while a member lives, and for a group that has none', async () => {
    const group = await groupOf('sleep 300');
    await until('the group is there', async () => {
      try {
        return process.kill(-group, 0);
      } catch {
        return false;
      }
    });
    assert.equal(await onlyZombies(group), false);
    process.kill(-group, 'SIGKILL');
    await until('the child is a zombie', () => onlyZombies(group));
    assert.equal(await onlyZombies(2 ** 22 + 1), false);
  });
});

import { readdir, readFile } from 'node:fs/promises';

/**
 * True when the group has members and all of them are dead. Where nobody collects orphans, as in a container whose
 * first process is the worker, they stay in the process table and look alive to `kill`. Reads the whole table of
 * Linux; false where there is none.
 */
export async function onlyZombies(group: number): Promise<boolean> {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  let found = false;
  for (const id of ids) {
    const stat = await readFile(`/proc/${id}/stat`, 'latin1').catch(() => '');
    // `id (name) state parent group …`, and a name may have brackets in it.
    const [state, , memberOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(memberOf) !== group) continue;
    if (state !== 'Z' && state !== 'X') return false;
    found = true;
  }
  return found;
}

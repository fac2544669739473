import { readFile } from 'node:fs/promises';
import { waitUntil } from '../wait-until.js';

/** Dead, or a zombie that waits for a parent that does not care. */
export async function isDead(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.includes(') Z ');
}

/** The process ids in a file, one in each line, as soon as it has `count` of them. */
export async function pidsIn(file: string, count: number): Promise<number[]> {
  let pids: number[] = [];
  await waitUntil(`${count} processes in ${file}`, async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    pids = text.split('\n').slice(0, -1).map(Number);
    return pids.length >= count;
  });
  return pids;
}

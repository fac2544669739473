import { readFile } from 'node:fs/promises';
import { waitUntil } from '../wait-until.js';

/** True also for a zombie. */
export async function isDead(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.includes(') Z ');
}

/** Waits until the file has `count` lines with a process id each, and returns them. */
export async function pidsIn(file: string, count: number): Promise<number[]> {
  let pids: number[] = [];
  await waitUntil(`${file} has ${count} process ids`, async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    pids = text.split('\n').slice(0, -1).map(Number);
    return pids.length >= count;
  });
  return pids;
}

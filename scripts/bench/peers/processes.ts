import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ENTRY = fileURLToPath(new URL('child.mjs', import.meta.url));

export interface Task {
  peer: string;
  task: 'fill' | 'work' | 'clear';
  url: string;
  jobs: number;
  concurrency: number;
}

export interface WorkReport {
  /** From before it connects to the last completed job. */
  milliseconds: number;
  /** Additional starts of jobs that had already started. */
  startedTwice: number;
  /** Jobs that were not completed. */
  missed: number;
  settings: string;
}

/** Runs the task in a new process. */
export function perform(task: Task & { task: 'work' }): Promise<WorkReport>;
export function perform(task: Task): Promise<unknown>;
export function perform(task: Task): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const child = fork(ENTRY, [JSON.stringify(task)], {
      execArgv: [],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    let reply: { report: unknown } | undefined;
    child.on('message', (message: 'loaded' | { report: unknown }) => {
      if (message === 'loaded') child.send('go');
      else reply = message;
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (reply) resolve(reply.report);
      else reject(new Error(`${task.peer}: the process for '${task.task}' exited with ${String(code)}`));
    });
  });
}

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
  /** From before it connects to the last completion. */
  milliseconds: number;
  twice: number;
  missed: number;
  settings: string;
}

/** Does the task in a process of its own. */
export function perform(task: Task & { task: 'work' }): Promise<WorkReport>;
export function perform(task: Task): Promise<unknown>;
export function perform(task: Task): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const child = fork(ENTRY, [JSON.stringify(task)], {
      execArgv: [],
      env: { ...process.env, NODE_ENV: 'production' },
    });
    let answer: { report: unknown } | undefined;
    child.on('message', (message: 'loaded' | { report: unknown }) => {
      if (message === 'loaded') child.send('go');
      else answer = message;
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      if (answer) resolve(answer.report);
      else reject(new Error(`${task.peer}: the process for '${task.task}' exited with ${String(code)}`));
    });
  });
}

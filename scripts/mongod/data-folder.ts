import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { isListening } from './ports.js';
import { isAlive } from './processes.js';

/** What is remembered beside the data: a replica set knows its members by their ports. */
export interface LastRun {
  port: number;
  /** The mongod. */
  pid: number;
  /** The process that started it. */
  ownerPid: number;
}

/** A folder that keeps the data of a one-member replica set from one run to the next. */
export class DataFolder {
  readonly databasePath: string;
  readonly #lastRunFile: string;

  constructor(folder: string) {
    this.databasePath = path.join(folder, 'db');
    this.#lastRunFile = path.join(folder, 'last-run.json');
  }

  async create(): Promise<void> {
    await mkdir(this.databasePath, { recursive: true });
  }

  async lastRun(): Promise<LastRun | undefined> {
    try {
      return JSON.parse(await readFile(this.#lastRunFile, 'utf8')) as LastRun;
    } catch {
      return undefined;
    }
  }

  async remember(run: LastRun): Promise<void> {
    await writeFile(this.#lastRunFile, JSON.stringify(run));
  }
}

/** Whether the mongod of that run is still at work; waits for it to end when its owner is gone. */
export async function isStillRunning(run: LastRun): Promise<boolean> {
  // The watchdog of an orphan ends it within two seconds, and closing the files takes a moment.
  for (let checks = 0; checks < 100 && isAlive(run.pid) && !isAlive(run.ownerPid); checks += 1) {
    await sleep(100);
  }
  // The process id alone may meanwhile belong to something else.
  return isAlive(run.pid) && (await isListening(run.port));
}

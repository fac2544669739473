import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { isListening } from './ports.js';
import { isAlive } from './processes.js';

/** Stored beside the data, because a replica set knows its members by their ports. */
export interface LastRun {
  port: number;
  /** Process id of the mongod. */
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

  async saveLastRun(run: LastRun): Promise<void> {
    await writeFile(this.#lastRunFile, JSON.stringify(run));
  }
}

/** Whether the mongod of that run is still running. If its owner is gone, waits for it to end. */
export async function isStillRunning(run: LastRun): Promise<boolean> {
  // Its watchdog ends an orphaned mongod within two seconds, and closing the files takes a moment.
  for (let checks = 0; checks < 100 && isAlive(run.pid) && !isAlive(run.ownerPid); checks += 1) {
    await sleep(100);
  }
  // By now the process id may belong to another program.
  return isAlive(run.pid) && (await isListening(run.port));
}

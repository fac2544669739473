import { fork, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FromChild, Report, Role } from './roles.js';

const ENTRY = fileURLToPath(new URL('child.ts', import.meta.url));

/** A measured child process. */
export class MeasuredProcess {
  readonly report: Promise<Report>;
  readonly #child: ChildProcess;
  readonly #loaded: Promise<void>;
  readonly #ready: Promise<void>;
  #done = 0;
  #onProgress: () => void = () => undefined;

  constructor(uri: string, role: Role) {
    this.#child = fork(ENTRY, [JSON.stringify({ role, uri })], {
      execArgv: ['--import', 'tsx'],
      env: { ...process.env, NODE_ENV: 'production', LOG_LEVEL: 'error' },
    });
    const failed = new Promise<never>((_, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code) => {
        reject(new Error(`the process for '${role.name}' exited with ${String(code)} before it reported`));
      });
    });
    failed.catch(() => undefined);
    const nextMessage = (kind: FromChild['kind']): Promise<FromChild> =>
      Promise.race([
        failed,
        new Promise<FromChild>((resolve) => {
          this.#child.on('message', (message: FromChild) => {
            if (message.kind === kind) resolve(message);
          });
        }),
      ]);
    this.#loaded = nextMessage('loaded').then(() => undefined);
    this.#ready = nextMessage('ready').then(() => undefined);
    this.report = nextMessage('report').then((message) => (message as { report: Report }).report);
    for (const promise of [this.#loaded, this.#ready, this.report]) promise.catch(() => undefined);
    this.#child.on('message', (message: FromChild) => {
      if (message.kind !== 'progress') return;
      this.#done = message.done;
      this.#onProgress();
    });
  }

  get done(): number {
    return this.#done;
  }

  onProgress(listener: () => void): void {
    this.#onProgress = listener;
  }

  async loaded(): Promise<this> {
    await this.#loaded;
    return this;
  }

  go(): void {
    this.#child.send('go');
  }

  async ready(): Promise<void> {
    await this.#ready;
  }

  async stop(): Promise<Report> {
    this.#child.send('stop');
    return this.report;
  }
}

/** Runs a role in a new process until it reports. */
export async function measure(uri: string, role: Role): Promise<Report> {
  const measured = await new MeasuredProcess(uri, role).loaded();
  measured.go();
  return measured.report;
}

import { readdirSync, watch, type FSWatcher } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../domain/clock.js';

/** An editor writes a file in several steps: a change is over when it was quiet for this many milliseconds. */
const QUIET = 150;
const MOST_FOLDERS = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;

/** Changes of sources in a folder and those below it, but for installed packages and hidden folders. */
export class Changes {
  readonly #watchers: FSWatcher[];
  readonly #clock: Clock;
  #last: string | undefined;
  #count = 0;
  #wake = (): void => undefined;

  constructor(folder: string, clock: Clock) {
    this.#clock = clock;
    this.#watchers = foldersIn(folder).map((path) =>
      watch(path, (_, file) => {
        if (file !== null && SOURCE.test(file)) this.#note(file);
      }),
    );
  }

  /** The name of a file that changed since it was asked last; undefined when the signal came first. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    while (!signal.aborted) {
      const count = this.#count;
      const last = this.#last;
      if (last === undefined) {
        await this.#noted(signal);
        continue;
      }
      await this.#clock.sleep(QUIET, signal);
      if (this.#count !== count) continue;
      this.#last = undefined;
      return last;
    }
    return undefined;
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close();
  }

  #note(file: string): void {
    this.#last = file;
    this.#count++;
    this.#wake();
  }

  #noted(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

/** One by one instead of recursively: nobody wants a watch on every package that is installed. */
function foldersIn(root: string): string[] {
  const folders = [root];
  for (let index = 0; index < folders.length && folders.length < MOST_FOLDERS; index++) {
    const folder = folders[index] ?? root;
    const below = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
      .map(({ name }) => join(folder, name));
    folders.push(...below);
  }
  return folders.slice(0, MOST_FOLDERS);
}

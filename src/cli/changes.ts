import { readdirSync, watch, type FSWatcher } from 'node:fs';
import { basename, join } from 'node:path';
import type { Clock } from '../domain/clock.js';

/** An editor writes a file in several steps: a change is over when it was quiet for this many milliseconds. */
const QUIET = 150;
/** How often to look for folders that came, in milliseconds: those that are not there yet tell nobody. */
const LOOK = 1000;
const MOST_FOLDERS = 500;
const SOURCE = /\.([cm]?[jt]sx?|json)$/;

/**
 * Changes of sources in a folder and those below it, but for installed packages and hidden folders. Folders come and
 * go, the first one too: a build may remove all that it made before.
 */
export class Changes {
  readonly #root: string;
  readonly #clock: Clock;
  #watchers = new Map<string, FSWatcher>();
  #last: string | undefined;
  #count = 0;
  #wake = (): void => undefined;

  /** Throws where the folder cannot be read. */
  constructor(folder: string, clock: Clock) {
    this.#root = folder;
    this.#clock = clock;
    readdirSync(folder);
    for (const path of foldersIn(folder)) this.#watch(path);
  }

  /** The name of a file or folder that changed since it was asked last; undefined when the signal came first. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    this.#renew();
    while (!signal.aborted) {
      const count = this.#count;
      const last = this.#last;
      if (last === undefined) {
        await this.#noted(signal);
        // What is in a folder that came may have been written before it was watched.
        for (const path of this.#look()) this.#note(basename(path));
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
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** A watch stays with a folder that was removed, whatever has its name since. The old ones go last: nothing is missed. */
  #renew(): void {
    const old = this.#watchers;
    this.#watchers = new Map();
    this.#look();
    for (const watcher of old.values()) watcher.close();
  }

  /** Watches the folders that came, and returns them. */
  #look(): string[] {
    return foldersIn(this.#root).filter((path) => {
      if (this.#watchers.has(path)) return false;
      try {
        this.#watch(path);
        return true;
      } catch {
        // Gone again, or one too many: the next look tries it once more.
        return false;
      }
    });
  }

  #watch(path: string): void {
    const watcher = watch(path, (event, file) => {
      if (file === null) return;
      if (SOURCE.test(file)) this.#note(file);
      // So a folder tells that it was itself removed.
      else if (event === 'rename' && file === basename(path)) this.#forget(path, watcher);
    });
    watcher.on('error', () => this.#forget(path, watcher));
    this.#watchers.set(path, watcher);
  }

  #forget(path: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(path) === watcher) this.#watchers.delete(path);
  }

  #note(file: string): void {
    this.#last = file;
    this.#count++;
    this.#wake();
  }

  /** Until a change is noted, or it is time to look. */
  async #noted(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    const wake = (): void => woken.abort();
    this.#wake = wake;
    signal.addEventListener('abort', wake);
    await this.#clock.sleep(LOOK, woken.signal);
    signal.removeEventListener('abort', wake);
  }
}

/** One by one instead of recursively: nobody wants a watch on every package that is installed. */
function foldersIn(root: string): string[] {
  const folders = [root];
  for (let index = 0; index < folders.length && folders.length < MOST_FOLDERS; index++)
    folders.push(...foldersOf(folders[index] ?? root));
  return folders.slice(0, MOST_FOLDERS);
}

/** None where it is gone. */
function foldersOf(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
      .map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}

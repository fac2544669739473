import type { AnyPayloads, AnyScheduler, Scheduler, SchedulerOptions } from '../../src/index.js';
import { TestDatabase } from './database.js';

/** One database for all tests of a file, cleared after each: much quicker than a new one for each. */
class SharedDatabase extends TestDatabase {
  readonly #opened: AnyScheduler[] = [];

  override scheduler<P extends object = AnyPayloads>(options: Partial<SchedulerOptions> = {}): Scheduler<P> {
    const scheduler = super.scheduler<P>(options);
    this.#opened.push(scheduler);
    return scheduler;
  }

  async clear(): Promise<void> {
    await Promise.all(this.#opened.splice(0).map((scheduler) => scheduler.stop('3s')));
    const { jobs, executions, workers, locks, schedules, skips, audit } = this.collections;
    await Promise.all(
      [jobs, executions, workers, locks, schedules, skips, audit].map((collection) =>
        collection.deleteMany(),
      ),
    );
  }
}

/** Call inside a `describe`. For tests that do not change indexes or validators. */
export function useSharedDatabase(): TestDatabase {
  const database = new SharedDatabase();
  before(() => database.open());
  afterEach(() => database.clear());
  after(() => database.close());
  return database;
}

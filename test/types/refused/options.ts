import { Scheduler } from '../../../src/index.js';

// refused: no connection string
new Scheduler({});
// refused: an option that does not exist
new Scheduler({ uri: 'mongodb://localhost', polInterval: 5000 });
// refused: an option of another type
new Scheduler({ uri: 'mongodb://localhost', concurrency: '5' });

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// refused: a limit per task type, which this version cannot promise
scheduler.registerHandler('work', () => 1, { concurrency: 1 });
// refused: a jitter that does not exist
scheduler.registerHandler('work', () => 1, { retries: { jitter: 'some' } });
// refused: a dispatch option that does not exist
await scheduler.dispatch('work', 1, { prio: 1 });
// refused: a dispatch option of another type
await scheduler.dispatch('work', 1, { key: { $ne: null } });
// refused: an id that is an object
await scheduler.cancel({ $ne: null });

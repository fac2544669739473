import { Scheduler } from '../../../src/index.js';

// rejected: no connection string
new Scheduler({});
// rejected: an option that does not exist
new Scheduler({ uri: 'mongodb://localhost', polInterval: 5000 });
// rejected: an option of another type
new Scheduler({ uri: 'mongodb://localhost', concurrency: '5' });

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// rejected: a concurrency per task type, which is not available yet
scheduler.registerHandler('work', () => 1, { concurrency: 1 });
// rejected: a jitter that does not exist
scheduler.registerHandler('work', () => 1, { retries: { jitter: 'some' } });
// rejected: a dispatch option that does not exist
await scheduler.dispatch('work', 1, { prio: 1 });
// rejected: a dispatch option of another type
await scheduler.dispatch('work', 1, { key: { $ne: null } });
// rejected: an id that is an object
await scheduler.cancel({ $ne: null });

import { Scheduler } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// rejected: an event that does not exist
scheduler.on('job:completed', () => 1);
// rejected: a field that this event does not have
scheduler.on('job:start', ({ result }) => result);
// rejected: reading a field of a result, whose type is unknown
scheduler.on('job:complete', ({ result }) => result.sent);
// rejected: the time of the next run without a check for undefined
scheduler.on('job:failed', ({ nextRunAt }) => nextRunAt.toISOString());
// rejected: a state that does not exist
scheduler.on('worker:state', ({ state }) => state === 'Paused');
// rejected: emitting an event from outside the scheduler
scheduler.emit('job:complete', {});

import { Scheduler } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

// refused: an event that does not exist
scheduler.on('job:completed', () => 1);
// refused: a part that this event does not have
scheduler.on('job:start', ({ result }) => result);
// refused: a result is not known to be anything
scheduler.on('job:complete', ({ result }) => result.sent);
// refused: the time of a next run that there may not be
scheduler.on('job:failed', ({ nextRunAt }) => nextRunAt.toISOString());
// refused: a state that does not exist
scheduler.on('worker:state', ({ state }) => state === 'Paused');
// refused: events are announced by the scheduler, not by others
scheduler.emit('job:complete', {});

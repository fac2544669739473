import { Scheduler } from '../../../src/index.js';

interface Payloads {
  sendEmail: { to: string };
  cleanUp: undefined;
}

const scheduler = new Scheduler<Payloads>({ uri: 'mongodb://localhost/app' });

// rejected: a payload of another type
await scheduler.dispatch('sendEmail', { to: 5 });
// rejected: a payload with a missing field
await scheduler.dispatch('sendEmail', {});
// rejected: a payload with an unknown field
await scheduler.dispatch('sendEmail', { to: 'a', cc: 'b' });
// rejected: a missing payload
await scheduler.dispatch('sendEmail');
// rejected: undefined instead of a payload
await scheduler.dispatch('sendEmail', undefined);
// rejected: a payload for a task type without one
await scheduler.dispatch('cleanUp', { to: 'a' });
// rejected: an unknown task type
await scheduler.dispatch('sendMail', { to: 'a' });
// rejected: an object instead of a name
await scheduler.dispatch({ $ne: null }, { to: 'a' });
// rejected: an unknown task type of a draft
await scheduler.delay('1h').dispatch('sendMail');
// rejected: a handler for an unknown task type
scheduler.registerHandler('sendMail', () => 1);
// rejected: a handler for another payload
scheduler.registerHandler('sendEmail', (payload: { from: string }) => payload.from);
scheduler.registerHandler('sendEmail', (payload) => {
  // rejected: a field that the payload does not have
  return payload.subject;
});
// rejected: dispatchMany with a payload of another type
await scheduler.dispatchMany([{ taskType: 'sendEmail', payload: { to: 5 } }]);
// rejected: dispatchMany with an unknown task type
await scheduler.dispatchMany([{ taskType: 'sendMail', payload: { to: 'a' } }]);

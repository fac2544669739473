import { Scheduler } from '../../../src/index.js';

interface Payloads {
  sendEmail: { to: string };
  cleanUp: undefined;
}

const scheduler = new Scheduler<Payloads>({ uri: 'mongodb://localhost/app' });

// refused: a payload of another type
await scheduler.dispatch('sendEmail', { to: 5 });
// refused: a payload with a part missing
await scheduler.dispatch('sendEmail', {});
// refused: a payload with a part too many
await scheduler.dispatch('sendEmail', { to: 'a', cc: 'b' });
// refused: no payload where there must be one
await scheduler.dispatch('sendEmail');
// refused: undefined where there must be a payload
await scheduler.dispatch('sendEmail', undefined);
// refused: a payload where there is none
await scheduler.dispatch('cleanUp', { to: 'a' });
// refused: an unknown task type
await scheduler.dispatch('sendMail', { to: 'a' });
// refused: an object instead of a name
await scheduler.dispatch({ $ne: null }, { to: 'a' });
// refused: an unknown task type of a draft
await scheduler.delay('1h').dispatch('sendMail');
// refused: a handler for an unknown task type
scheduler.registerHandler('sendMail', () => 1);
// refused: a handler that takes another payload
scheduler.registerHandler('sendEmail', (payload: { from: string }) => payload.from);
scheduler.registerHandler('sendEmail', (payload) => {
  // refused: a part that the payload does not have
  return payload.subject;
});
// refused: one of many with a payload of another type
await scheduler.dispatchMany([{ taskType: 'sendEmail', payload: { to: 5 } }]);
// refused: one of many of an unknown task type
await scheduler.dispatchMany([{ taskType: 'sendMail', payload: { to: 'a' } }]);

// The program that uses several such packages; its Scheduler needs no type argument.
import { Scheduler } from 'chronos-worker';
import { registerMail } from './mail-package.js';

declare module 'chronos-worker' {
  interface TaskMap {
    cleanUp: undefined;
  }
}

const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
registerMail(scheduler);
await scheduler.dispatch('cleanUp');
export const { sent } = await (await scheduler.dispatch('sendEmail', { to: 'a' })).result();

// rejected: a task type that no package added
await scheduler.dispatch('sendMail', { to: 'a' });
// rejected: a missing payload
await scheduler.dispatch('sendEmail');

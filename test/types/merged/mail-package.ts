// A package that adds its task types to the map of the whole program.
import type { Scheduler, Task } from 'chronos-worker';

declare module 'chronos-worker' {
  interface TaskMap {
    sendEmail: Task<{ to: string }, { sent: boolean }>;
  }
}

export function registerMail(scheduler: Scheduler): void {
  scheduler.registerHandler('sendEmail', ({ to }) => ({ sent: to !== '' }));
}

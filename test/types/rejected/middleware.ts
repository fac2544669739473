import { RetryAfter, Scheduler, UnrecoverableError } from '../../../src/index.js';

interface Payloads {
  sendEmail: { to: string };
}

const scheduler = new Scheduler<Payloads>({ uri: 'mongodb://localhost/app' });

// rejected: middleware that is not a function
scheduler.use({ before: () => 1 });
// rejected: middleware that passes another job to the handler
scheduler.use((job, next) => next(job));
// rejected: reading a field of a result, whose type is unknown
scheduler.use(async (_, next) => (await next()).sent);
// rejected: dispatch middleware that passes on a request without a task type
scheduler.useDispatch((_, next) => next({ payload: 1 }));
// rejected: dispatch middleware that changes the request in place
scheduler.useDispatch((request) => (request.taskType = 'other'));
// rejected: a hook for another payload
scheduler.registerHandler('sendEmail', () => 1, { before: ({ from }) => from });
// rejected: a filter that is not a function
scheduler.registerHandler('sendEmail', () => 1, { when: true });
// rejected: an async function that decides about retries
scheduler.registerHandler('sendEmail', () => 1, { retries: { if: async () => true } });
// rejected: a fixed delay, which is what base is for
scheduler.registerHandler('sendEmail', () => 1, { retries: { delay: '30s' } });
// rejected: a function in the retries of a dispatch
await scheduler.dispatch('sendEmail', { to: 'a' }, { retries: { if: () => true } });
// rejected: a function in the retries of a draft
scheduler.delay('1h').retries({ delay: () => 1 });
// rejected: a function in the retries of a stored schedule
await scheduler.addSchedule({ taskType: 'sendEmail', cron: '* * * * *', retries: { if: () => true } });
// rejected: a retry without its delay
new RetryAfter();
// rejected: an unrecoverable error with the options in place of the message
new UnrecoverableError({ cause: 1 });

// Middleware around handlers and dispatches, and the functions in the options of a handler.
import {
  Scheduler,
  type DispatchMiddleware,
  type HandlerMiddleware,
  type HandlerOptions,
  type JobHandle,
} from '../../../src/index.js';

interface Payloads {
  sendEmail: { to: string };
  cleanUp: undefined;
  nightly: { n: number };
}

const scheduler = new Scheduler<Payloads>({
  uri: 'mongodb://localhost/app',
  retries: { max: 5, if: (error) => error.name !== 'AccountClosed' },
});

const measured: HandlerMiddleware = async (job, next) => {
  const result: unknown = await next();
  job.log(`${job.taskType} ${job.attempt}`);
  return result;
};

const traced: DispatchMiddleware = async (request, next) => {
  const handle: JobHandle = await next({ ...request, payload: { ...(request.payload as object), trace: 1 } });
  handle.id.concat(request.taskType, request.options?.queue ?? 'default');
};

export const chained: Scheduler<Payloads> = scheduler
  .use(measured)
  .use((job, next) => (job.signal.aborted ? null : next()))
  .useDispatch(traced)
  .useDispatch((request, next) => next({ ...request, options: { ...request.options, priority: 1 } }))
  .useDispatch((_, next) => next());

// Hooks have the payload type of the handler map: one function or a list.
scheduler.registerHandler('sendEmail', ({ to }) => to, {
  retries: { max: 3, delay: (attempt, error) => (error.message === '' ? attempt * 1000 : '30s') },
  when: ({ to }) => to !== '',
  skip: [async ({ to }, job) => Promise.resolve(to === job.id)],
  before: ({ to }, job) => job.log(to),
  onSuccess: [({ to }, job, result) => [to.length, job.id, result satisfies unknown]],
  onError: (error, { to }) => `${error.message} ${to}`,
  after: [({ to }) => to, () => undefined],
});

// Without a handler map, hooks declare the payload that they expect.
const options: HandlerOptions = { before: (payload: { n: number }) => payload.n };
new Scheduler({ uri: 'mongodb://localhost/app' }).registerHandler('any', () => 1, options);

scheduler
  .schedule('nightly', (args: { n: number }) => args.n)
  .retries({ max: 5, delay: () => '1m', if: (error) => error instanceof TypeError });

// Payloads, results and schemas of a handler map: in dispatch, drafts, dispatchMany, define, addSchedule and handle.result().
import { z } from 'zod';
import {
  Scheduler,
  type InputOf,
  type JobContext,
  type JobHandle,
  type ResultOf,
  type SchemaTask,
  type Task,
} from '../../../src/index.js';

const invoice = z.object({ due: z.string().transform((text) => new Date(text)) });

const handlers = {
  resize: async (payload: { url: string; width: number }, job: JobContext) => {
    await job.reportProgress(50);
    return `${payload.url}?w=${payload.width}`;
  },
  cleanUp: () => undefined,
};

class Thumbnail {
  handle({ page }: { page: number }): { pages: number } {
    return { pages: page };
  }
}

interface Tasks {
  /** Only the payload. */
  sendEmail: { to: string };
  /** The types of a handler. */
  resize: typeof handlers.resize;
  cleanUp: typeof handlers.cleanUp;
  thumbnail: typeof Thumbnail;
  /** Payload and result. */
  count: Task<{ table: string }, number>;
  /** The input of the schema is dispatched; the handler receives its output. */
  bill: SchemaTask<typeof invoice, 'paid' | 'open'>;
  /** The name of a definition. */
  'daily-report': { month: number } | null;
}

const scheduler = new Scheduler<Tasks>({ uri: 'mongodb://localhost/app' });

scheduler
  .registerHandler('resize', handlers.resize)
  .registerHandler('cleanUp', handlers.cleanUp)
  .registerHandler('thumbnail', Thumbnail)
  .registerHandler('count', async ({ table }) => Promise.resolve(table.length))
  .registerHandler('bill', ({ due }) => (due.getTime() > 0 ? 'paid' : 'open'), { schema: invoice });

scheduler
  .schedule('daily-report', (args) => args?.month)
  .dailyAt('02:00')
  .args({ month: 1 })
  .when((args) => args?.month === 1);
scheduler.define('count', { table: 'users' }).named('daily-report').hourly();
scheduler.define('shell', { file: '/bin/true' }).daily();

export async function results(): Promise<void> {
  const url: string = await (await scheduler.dispatch('resize', { url: 'a', width: 1 })).result();
  const nothing: null = await (await scheduler.dispatch('cleanUp')).result();
  const pages: { pages: number } = await (await scheduler.dispatch('thumbnail', { page: 1 })).result();
  const byClass: { pages: number } = await (await scheduler.dispatch(Thumbnail, { page: 1 })).result();
  const count: number = await (await scheduler.dispatch('count', { table: 'users' })).result();
  const paid: 'paid' | 'open' = await (await scheduler.dispatch('bill', { due: '2026-12-01' })).result();
  const unknown: unknown = await (await scheduler.dispatch('sendEmail', { to: 'a' })).result();
  const drafted: JobHandle<number> = await scheduler.delay('1h').args({ table: 'users' }).dispatch('count');
  const other: number = await scheduler.job<number>('count=1').result({ timeout: '1s' });
  console.log(url, nothing, pages, byClass, count, paid, unknown, drafted.id, other);

  // A payload that may be null or undefined may be left out.
  await scheduler.dispatch('daily-report');
  await scheduler.delay('1h').dispatch('cleanUp');
  await scheduler.dispatchMany([
    { taskType: 'sendEmail', payload: { to: 'a' }, options: { tags: ['a'] } },
    { taskType: 'bill', payload: { due: '2026-12-01' } },
    { taskType: 'cleanUp' },
  ]);
  await scheduler.addSchedule({ taskType: 'count', payload: { table: 'users' }, cron: '@daily' });
  await scheduler.upsertSchedule({ id: 'clean', taskType: 'cleanUp', cron: '@daily' });
}

const input: InputOf<Tasks['bill']> = { due: '2026-12-01' };
const result: ResultOf<Tasks['resize']> = 'a';
console.log(input, result);

// Without a map, any string compiles, and a schema gives the handler its payload type.
const untyped = new Scheduler({ uri: 'mongodb://localhost/app' });
untyped.registerHandler('bill', ({ due }) => due.getTime(), { schema: invoice, timeout: '1m' });
untyped.registerHandler('anything', (payload: { n: number }) => payload.n);
export const untypedJobs = [
  untyped.dispatch('whatever'),
  untyped.dispatch('whatever', { n: 1 }, { delay: '1m' }),
  untyped.delay('1m').args({ n: 1 }).dispatch('whatever'),
];

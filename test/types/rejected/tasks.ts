import { z } from 'zod';
import { Scheduler, type SchemaTask, type Task } from '../../../src/index.js';

const invoice = z.object({ due: z.string().transform((text) => new Date(text)) });
const other = z.object({ when: z.string() });

interface Tasks {
  sendEmail: { to: string };
  count: Task<{ table: string }, number>;
  bill: SchemaTask<typeof invoice>;
  'daily-report': { month: number };
  cleanUp: () => undefined;
}

const scheduler = new Scheduler<Tasks>({ uri: 'mongodb://localhost/app' });

// rejected: a typo in a task type
await scheduler.dispatch('sendEmial', { to: 'a' });
// rejected: a missing payload
await scheduler.dispatch('sendEmail');
// rejected: the output of a schema instead of its input
await scheduler.dispatch('bill', { due: new Date() });
// rejected: a result of another type
const text: string = await (await scheduler.dispatch('count', { table: 'a' })).result();
// rejected: a handler that returns another type
scheduler.registerHandler('count', ({ table }) => table);
// rejected: a handler that takes the input of the schema
scheduler.registerHandler('bill', (payload: { due: string }) => payload.due);
// rejected: a schema of another payload
scheduler.registerHandler('bill', () => 1, { schema: other });
// rejected: a draft with the payload of another task type
await scheduler.args({ table: 'a' }).dispatch('sendEmail');
// rejected: a draft without the payload
await scheduler.delay('1h').dispatch('sendEmail');
// rejected: a payload for a handler without parameters
await scheduler.dispatch('cleanUp', { to: 'a' });
// rejected: a definition whose name is not in the map
scheduler.schedule('daily-reprot', () => 1).daily();
// rejected: a definition whose handler takes another payload
scheduler.schedule('daily-report', (args: { day: number }) => args.day).daily();
// rejected: a definition that runs an unknown task type
scheduler.schedule('daily-report', 'reports').daily();
// rejected: define with a payload of another type
scheduler.define('count', { table: 1 });
// rejected: define with an unknown task type
scheduler.define('counts', { table: 'a' });
// rejected: a stored schedule with a payload of another type
await scheduler.addSchedule({ taskType: 'count', payload: { table: 1 }, cron: '@daily' });
// rejected: a stored schedule without its payload
await scheduler.addSchedule({ taskType: 'count', cron: '@daily' });
// rejected: a stored schedule of an unknown task type
await scheduler.upsertSchedule({ id: 'a', taskType: 'counts', payload: { table: 'a' }, cron: '@daily' });
// rejected: dispatchMany without a payload
await scheduler.dispatchMany([{ taskType: 'count' }]);
console.log(text);

import { Scheduler } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
const builder = scheduler.schedule('sync', (args: { n: number }) => args.n);

// rejected: an upsert without an id
await scheduler.upsertSchedule({ taskType: 'work', cron: '@daily' });
// rejected: an upsert that pauses
await scheduler.upsertSchedule({ id: 's', taskType: 'work', cron: '@daily', isActive: false });
// rejected: schedule() with a date, as in Agenda
scheduler.schedule(new Date(), 'work');
// rejected: a builder as a thenable
builder.then(() => 1);
// rejected: catch on a builder
builder.catch(() => 1);
// rejected: finally on a builder
builder.finally(() => 1);
// rejected: a draft of a definition as a thenable
builder.delay('10s').then(() => 1);
// rejected: args that the handler does not accept
builder.args({ n: 'one' });
// rejected: a dispatch with a payload that the handler does not accept
await builder.dispatch({ n: 'one' });
// rejected: a filter that does not return a boolean
builder.when(() => 'yes');
// rejected: a filter that reads a field that the args do not have
builder.skip((args) => args.m);
// rejected: an onError that expects the args first
builder.onError((args) => args.n);
// rejected: reading a field of a result, whose type is unknown
builder.onSuccess((_args, _job, result) => result.sent);
// rejected: a hook that is not a function
builder.before('log');
// rejected: a time that is not a string
builder.dailyAt(2);
// rejected: everyXMinutes without the number of minutes
builder.everyXMinutes();
// rejected: minutes as a string
builder.hourlyAt('15');
// rejected: a day of the week by name
builder.weeklyOn('monday');
// rejected: hours as a string
builder.hours('9');
// rejected: a number for a day of the week that has a name
builder.mondays(1);
// rejected: a helper that does not exist
builder.everySevenMinutes();
// rejected: between with only one time
builder.between('09:00');
// rejected: an overlap policy that does not exist
builder.overlap('never');
// rejected: a misfire policy that does not exist
builder.onMisfire('never');
// rejected: a misfire limit that does not exist
builder.onMisfire('all', { most: 5 });
// rejected: singleInstance with a value that is not a boolean
builder.singleInstance('yes');
// rejected: an option of retries that does not exist
builder.retries({ tries: 3 });
// rejected: a field that does not exist
builder.fields({ minute: 5 });
// rejected: a concurrency per task type, which is not available yet
builder.concurrency(1);
// rejected: a frequency for a single dispatch
builder.delay('10s').daily();
// rejected: a handler that is a number
scheduler.schedule('sync', 5);
// rejected: a name that is not a string
scheduler.schedule({ $ne: null });
// rejected: a command without a function
scheduler.registerCommand('app:report');
// rejected: emitting on the channel
scheduler.channel.emit('tick');
// rejected: changing the name of a definition
scheduler.getDefinitions()[0]!.name = 'another';
// rejected: changing the priority of a definition
scheduler.getDefinitions()[0]!.schedule.priority = 1;
// rejected: changing the rule of a definition
scheduler.getDefinitions()[0]!.schedule.rule!.cron = '* * * * *';
// rejected: a stored schedule without a task type
await scheduler.addSchedule({ cron: '* * * * *' });
// rejected: an option of a schedule that does not exist
await scheduler.addSchedule({ taskType: 'sync', corn: '* * * * *' });

import { Scheduler } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
const builder = scheduler.schedule('sync', (args: { n: number }) => args.n);

// refused: a builder is no thenable
builder.then(() => 1);
// refused: nor has it what a promise has
builder.catch(() => 1);
// refused: nor this
builder.finally(() => 1);
// refused: a draft of a definition is no thenable
builder.delay('10s').then(() => 1);
// refused: args that the handler does not take
builder.args({ n: 'one' });
// refused: a dispatch with a payload that the handler does not take
await builder.dispatch({ n: 'one' });
// refused: a filter that answers neither yes nor no
builder.when(() => 'yes');
// refused: a filter that reads what the args do not have
builder.skip((args) => args.m);
// refused: onError is given the error first
builder.onError((args) => args.n);
// refused: a result is not known to be anything
builder.onSuccess((_args, _job, result) => result.sent);
// refused: a hook that is no function
builder.before('log');
// refused: a time that is no text
builder.dailyAt(2);
// refused: how many minutes is missing
builder.everyXMinutes();
// refused: minutes as text
builder.hourlyAt('15');
// refused: a day of the week by name
builder.weeklyOn('monday');
// refused: hours as text
builder.hours('9');
// refused: a day of the week needs no number
builder.mondays(1);
// refused: a helper that does not exist
builder.everySevenMinutes();
// refused: only one end of the day
builder.between('09:00');
// refused: a policy for overlaps that does not exist
builder.overlap('never');
// refused: a policy for missed runs that does not exist
builder.onMisfire('never');
// refused: a limit of missed runs that does not exist
builder.onMisfire('all', { most: 5 });
// refused: a single instance, or not
builder.singleInstance('yes');
// refused: retries by another name
builder.retries({ tries: 3 });
// refused: a field that does not exist
builder.fields({ minute: 5 });
// refused: a limit per task type, which this version cannot promise
builder.concurrency(1);
// refused: when it runs is said before it is dispatched
builder.delay('10s').daily();
// refused: no handler that could take anything
scheduler.schedule('sync', 5);
// refused: a name that is no text
scheduler.schedule({ $ne: null });
// refused: a command without a function
scheduler.registerCommand('app:report');
// refused: jobs speak on the channel, nobody else
scheduler.channel.emit('tick');
// refused: nobody renames a definition
scheduler.getDefinitions()[0]!.name = 'another';
// refused: nor changes what it says
scheduler.getDefinitions()[0]!.schedule.priority = 1;
// refused: nor when it runs
scheduler.getDefinitions()[0]!.schedule.rule!.cron = '* * * * *';
// refused: a stored schedule without a task type
await scheduler.addSchedule({ cron: '* * * * *' });
// refused: an option of a schedule that does not exist
await scheduler.addSchedule({ taskType: 'sync', corn: '* * * * *' });

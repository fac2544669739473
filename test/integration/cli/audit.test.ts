import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import { runProgram } from '../../../src/cli/program.js';
import { ROUTES } from '../../../src/http/api.js';
import { runChronos } from '../../support/chronos-command.js';
import { runChronosInProcess, FakeTerminal } from '../../support/fake-terminal.js';
import { aWorker } from '../../support/factories/worker.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('the audit log of chronos', () => {
  const db = useSharedDatabase();

  async function run(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await runChronosInProcess(words, { MONGODB_URI: db.uri });
    assert.ok(code === 0 || code === 1, `${words.join(' ')}: ${stderr}`);
    return stdout;
  }

  const entries = () => db.collections.audit.find().sort({ at: 1, _id: 1 }).toArray();

  it('has an entry before and after each change of a job, with the user who made it [B13]', async () => {
    const later = ['--delay', '1h', '--key'];
    const { stdout } = await runChronos(['dispatch', 'mail', ...later, 'a'], { MONGODB_URI: db.uri });
    assert.match(stdout, /Dispatched mail=a/);
    await run('jobs', 'cancel', 'mail=a', 'mail=nope');
    await run('dispatch', 'mail', ...later, 'b');
    await run('jobs', 'hold', '--queue', 'default', '--yes');
    const all = await entries();
    const summary = all.map(({ action, target, counts, filter }) => [action, target, counts ?? filter]);
    assert.deepEqual(summary, [
      ['dispatchJob:attempted', null, { taskType: 'mail' }],
      ['dispatchJob', 'mail=a', { taskType: 'mail' }],
      ['cancelJob:attempted', 'mail=a', null],
      ['cancelJob', 'mail=a', null],
      ['cancelJob:attempted', 'mail=nope', null],
      ['cancelJob:refused', 'mail=nope', null],
      ['dispatchJob:attempted', null, { taskType: 'mail' }],
      ['dispatchJob', 'mail=b', { taskType: 'mail' }],
      ['holdJobs:attempted', null, { queue: 'default' }],
      ['holdJobs', null, { matched: 1, changed: 1, requested: 0, refused: 0 }],
    ]);
    assert.deepEqual(
      [...new Set(all.map(({ who }) => who))],
      [`cli:${userInfo().username}@${hostname()}`, 'cli:ada@here'],
    );
    // The two entries of a change have the same request id.
    assert.equal(new Set(all.map(({ requestId }) => requestId)).size, all.length / 2);

    const listed = await run('audit', 'list', '--target', 'mail=a');
    assert.match(listed, /^WHEN +WHO +ACTION +TARGET +FILTER +COUNTS\n.* cli:ada@here +cancelJob +mail=a\n/);
    assert.match(listed, /dispatchJob +mail=a +taskType=mail\n$/);
    const page = await run('audit', 'list', '--who', 'cli:ada@here', '--limit', '1', '--json');
    const { items: found, next } = JSON.parse(page) as { items: { action: string }[]; next: string };
    assert.equal(found[0]?.action, 'holdJobs');
    assert.match(
      await run('audit', 'list', '--after', next, '--limit', '1'),
      /holdJobs:attempted[\s\S]*--after/,
    );
    assert.equal(await run('audit', 'list', '--who', 'nobody'), 'No entries.\n');
  });

  it('has no entry for a dry run, or when the confirmation is rejected or impossible', async () => {
    const scheduler = db.scheduler();
    await scheduler.dispatch('mail', null, { delay: '1h' });
    await scheduler.addSchedule({ id: 's', taskType: 'mail', every: '1h', startsAt: '2026-01-01' });
    const commands = [
      ['prune', '--older-than', '1ms', '--dry-run'],
      ['jobs', 'cancel', '--type', 'mail'],
      ['jobs', 'cancel', '--type', 'nobody', '--yes'],
      ['jobs', 'cancel', 'good', ''],
      ['schedules', 'remove', 's'],
      ['schedules', 'remove', 'nope', '--yes'],
      ['schedules', 'update', 's'],
      ['schedules', 'backfill', 's', '--from', '2026-01-01', '--to', '2026-01-02'],
    ];
    for (const words of commands) await runChronosInProcess(words, { MONGODB_URI: db.uri });
    const terminal = new FakeTerminal({ MONGODB_URI: db.uri });
    terminal.stdin.write('n\n');
    assert.equal(await runProgram(['schedules', 'remove', 's'], terminal.host), 1);
    assert.deepEqual(await entries(), []);
  });

  it('has the action names of the HTTP API, which has a command for each of its changes', async () => {
    const scheduler = db.scheduler();
    await scheduler.dispatch('mail');
    await scheduler.cancel((await scheduler.dispatch('mail', null, { key: 'k' })).id);
    const allMail = ['--type', 'mail', '--yes'];
    for (const verb of ['retry', 'hold', 'unhold', 'cancel']) await run('jobs', verb, 'mail=k');
    for (const verb of ['hold', 'unhold', 'cancel']) await run('jobs', verb, ...allMail);
    await run('jobs', 'retry', '--state', 'cancelled', ...allMail);
    await run('jobs', 'reschedule', 'mail=k', '--delay', '1h');
    await db.collections.jobs.updateMany({}, [{ $set: { status: 'FAILED', finishedAt: '$$NOW' } }]);
    await run('dead', 'retry', ...allMail);
    await run('dispatch', 'mail');
    await run('schedules', 'add', 'mail', '--id', 's', '--every', '1h', '--starts-at', '2026-01-01');
    await run('schedules', 'upsert', 's', 'mail', '--every', '1h', '--starts-at', '2026-01-01');
    await run('schedules', 'update', 's', '--every', '2h');
    for (const verb of ['pause', 'resume', 'trigger']) await run('schedules', verb, 's');
    await run('schedules', 'backfill', 's', '--from', '2026-01-01', '--to', '2026-01-02', '--yes');
    await run('schedules', 'remove', 's', '--yes');
    await run('collect');
    await scheduler.operations.cancelJobs({});
    await run('jobs', 'delete', 'mail=k', '--yes');
    await run('jobs', 'delete', ...allMail);
    await run('dispatch', 'mail');
    await run('queues', 'empty', 'default', '--yes');
    await db.collections.workers.insertOne(aWorker({ heartbeatAt: new Date() }));
    for (const verb of ['drain', 'undrain']) await run('workers', verb, 'worker');
    await run('workers', 'drain', 'nobody');
    await scheduler.cancel((await scheduler.dispatch('mail')).id);
    await run('prune', '--older-than', '1ms', '--yes');

    const completed = (await entries()).map(({ action }) => action).filter((action) => !action.includes(':'));
    const changes = ROUTES.filter(({ audit }) => audit !== undefined).map(({ operationId }) => operationId);
    assert.deepEqual([...new Set(completed)].sort(), changes.sort());
  });
});

import assert from 'node:assert/strict';
import { createCliRunner } from '../../support/cli-runner.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';
import { useSharedDatabase } from '../../support/shared-database.js';

describe('chronos commands for schedules and definitions', () => {
  const db = useSharedDatabase();
  const { run, runJson } = createCliRunner(() => ({ MONGODB_URI: db.uri, SCHEDULES: 'good,queued' }));
  before(() => {
    // The fixture with the definitions reads it also when a command runs in this process.
    process.env['SCHEDULES'] = 'good,queued';
  });
  after(() => {
    delete process.env['SCHEDULES'];
  });

  const rule = ['--cron', '0 8 * * MON', '--timezone', 'Asia/Tokyo'];
  const add = ['schedules', 'add', 'digest', '--id', 'weekly', ...rule];

  it('add, list, show, preview and update stored schedules', async () => {
    const more = ['--payload', '{"a":1}', '--misfire', 'all', '--user', 'u1'];
    const options = ['--options', '{"weekdays":[1]}'];
    assert.deepEqual(await runJson(...add, ...more, ...options), { id: 'weekly' });
    const [again, wrong, list, shown, preview, withoutDatabase] = await Promise.all([
      run(...add),
      run('schedules', 'add', 'digest', '--cron', 'every day'),
      run('schedules', 'list', '--owner', 'api'),
      runJson<{ schedule: Record<string, unknown>; nextRuns: string[] }>('schedules', 'show', 'weekly'),
      runJson<{ timezone: string; times: string[] }>(
        ...['schedules', 'preview', 'weekly', '--from', '2026-01-01', '--count', '2'],
      ),
      runChronosInProcess(
        ['schedules', 'preview', '--cron', '0 8 * * *', '--timezone', 'Europe/Berlin', '--count', '3'],
        {},
      ),
    ]);
    assert.deepEqual([again.code, wrong.code], [1, 2]);
    assert.match(again.stderr, /there is already a schedule 'weekly'/);
    assert.match(wrong.stderr, /cron/);
    assert.match(list.stdout, /weekly +api +digest +active +in \d+\w+ +– +0 8 \* \* MON .*Asia\/Tokyo/);
    const { payload, misfire, userId } = shown.schedule as {
      payload: unknown;
      misfire: { policy: string };
      userId: string;
    };
    assert.deepEqual([payload, misfire.policy, userId], [{ a: 1 }, 'all', 'u1']);
    assert.equal(shown.nextRuns.length, 5);
    assert.deepEqual(preview, {
      timezone: 'Asia/Tokyo',
      times: ['2026-01-04T23:00:00.000Z', '2026-01-11T23:00:00.000Z'],
    });
    assert.deepEqual([withoutDatabase.code, withoutDatabase.stdout.trim().split('\n').length], [0, 4]);
    assert.match(withoutDatabase.stdout, /08:00:00/);

    assert.equal((await run('schedules', 'update', 'weekly', '--every', '1h', '--unset', 'userId')).code, 0);
    const changed = await db.scheduler().getSchedule('weekly');
    assert.deepEqual([changed?.rule?.every, changed?.userId], [3_600_000, null]);
    const upsert = ['schedules', 'upsert', 'weekly', 'digest', '--cron', '@weekly'];
    const upserts = [
      await run(...upsert),
      await run(...upsert),
      await run('schedules', 'upsert', 'new', 'digest'),
    ];
    assert.deepEqual(
      upserts.map(({ code, stdout }) => [code, stdout.trim()]),
      [
        [0, 'The schedule weekly is updated.'],
        [0, 'The schedule weekly is unchanged.'],
        [2, ''],
      ],
    );
    assert.equal((await db.scheduler().getSchedule('weekly'))?.payload, null, 'the whole definition');
    const [nothing, unknown, missing] = await Promise.all([
      run('schedules', 'update', 'weekly'),
      run('schedules', 'update', 'weekly', '--unset', 'quue'),
      run('schedules', 'update', 'nope', '--every', '1h'),
    ]);
    assert.deepEqual([nothing.code, unknown.code, missing.code], [2, 2, 1]);
    assert.match(unknown.stderr, /did you mean 'queue'/);
    assert.match(missing.stdout, /There is no schedule 'nope'/);
  });

  it('pause, resume, trigger, backfill and remove schedules', async () => {
    const scheduler = db.scheduler();
    await scheduler.addSchedule({
      id: 'often',
      taskType: 'digest',
      every: '1h',
      startsAt: '2026-01-01',
      overlap: 'allow',
    });
    assert.equal((await run('schedules', 'pause', 'often', '--reason', 'quiet', '--by', 'ada')).code, 0);
    const { paused } = (await scheduler.getSchedule('often')) ?? {};
    assert.deepEqual([paused?.by, paused?.reason], ['ada', 'quiet']);
    assert.equal((await run('schedules', 'resume', 'often')).code, 0);
    assert.equal((await scheduler.getSchedule('often'))?.isActive, true);

    const span = ['--from', '2026-01-01', '--to', '2026-01-02'];
    const unconfirmed = await run('schedules', 'backfill', 'often', ...span);
    assert.equal(unconfirmed.code, 2);
    assert.match(
      unconfirmed.stderr,
      /This will create 25 jobs for occurrences from 2026-01-01 .*; 0 more .*--yes/,
    );
    assert.equal((await scheduler.operations.countMatching({ schedule: 'often' })).count, 0);
    const [triggered, unknown, filled, wrong, absent, unconfirmedRemoval] = await Promise.all([
      runJson<{ triggered: boolean; jobId: string }>('schedules', 'trigger', 'often'),
      run('schedules', 'trigger', 'nope'),
      runJson<object>('schedules', 'backfill', 'often', ...span, '--yes'),
      run('schedules', 'backfill', 'often', '--from', 'yesterday'),
      run('schedules', 'backfill', 'nope', ...span, '--yes'),
      run('schedules', 'remove', 'often'),
    ]);
    assert.notEqual(await scheduler.getJob(triggered.jobId), null);
    assert.deepEqual([unknown.code, wrong.code, absent.code, unconfirmedRemoval.code], [1, 2, 1, 2]);
    assert.deepEqual(filled, { occurrences: 25, existing: 0, isAborted: false });
    assert.equal((await scheduler.operations.countMatching({ schedule: 'often' })).count, 26);
    const again = await run('schedules', 'backfill', 'often', ...span);
    assert.deepEqual(
      [again.code, again.stdout],
      [0, 'Nothing to create: 25 occurrences, and each has a job.\n'],
    );
    assert.match(
      unconfirmedRemoval.stderr,
      /This will remove the schedule 'often' and its 0 pending runs.*--yes/,
    );
    assert.equal((await run('schedules', 'remove', 'often', '--yes')).code, 0);
    assert.equal(await scheduler.getSchedule('often'), null);
    assert.equal((await run('schedules', 'remove', 'often', '--yes')).code, 1);
  });

  const handlers = ['--handlers', 'test/fixtures/schedules.mjs'];

  it('show the loaded definitions with rules, next times and differences, and create the due jobs [Y10] [J14]', async () => {
    const [shown, usage, none, before] = await Promise.all([
      runJson<{ items: { name: string; nextRuns: string[]; stored: unknown }[] }>('show', ...handlers),
      runJson<{ taskTypes: string[]; definitions: string[]; options: Record<string, unknown> }>(
        'usage',
        ...handlers,
      ),
      run('show'),
      run('schedules', 'diff', ...handlers),
    ]);
    assert.deepEqual(
      shown.items.map(({ name, nextRuns, stored }) => [name, nextRuns.length, stored]),
      [
        ['good', 3, null],
        ['queued', 3, null],
      ],
    );
    assert.deepEqual(usage.definitions, ['good', 'queued']);
    assert.ok(usage.taskTypes.includes('queued'));
    assert.ok(!('uri' in usage.options));
    assert.equal(usage.options['connectTimeout'], 60_000, 'the timeout of a worker, not that of a command');
    assert.match(none.stdout, /No definitions/);
    assert.equal(before.code, 1);
    assert.match(before.stdout, /new +good\nnew +queued/);

    assert.deepEqual(await runJson('collect', ...handlers), { created: 0, jobs: [] });
    await db.makeSchedulesDue(3_600_000);
    const [made, table] = [await run('collect', ...handlers), await run('show', ...handlers)];
    assert.match(made.stdout, /^2 jobs created\.\n {2}good@.*\n {2}queued@/);
    assert.match(table.stdout, /good +handler good +yes +active +in \d+\w+ +every 1h UTC/);
    const same = await runJson<{ isSame: boolean }>('schedules', 'diff', ...handlers);
    assert.equal(same.isSame, true);
    await db.collections.schedules.updateOne({ _id: 'good' }, { $set: { priority: 7, hash: 'other' } });
    const differs = await run('schedules', 'diff', ...handlers);
    assert.equal(differs.code, 1);
    assert.match(differs.stdout, /changed +good\n +- priority: 7\n +\+ priority: 100/);
  });
});

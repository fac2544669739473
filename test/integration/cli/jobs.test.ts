import assert from 'node:assert/strict';
import { createCliRunner } from '../../support/cli-runner.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const HOSTILE = '\u001b[2J\u001b]0;owned\u0007\u202etxt.exe\u009b31m';
// eslint-disable-next-line no-control-regex
const ESCAPES = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/u;

describe('chronos commands for jobs and executions', () => {
  const db = useSharedDatabase();
  const { run, runJson } = createCliRunner(() => ({ MONGODB_URI: db.uri }));

  /** A completed job, a failed one with escape sequences in its error, one that is due in an hour and one that is due. */
  async function createJobs() {
    const scheduler = db.scheduler();
    const good = await scheduler.dispatch('good', { n: 1 });
    const bad = await scheduler.dispatch('bad');
    scheduler.registerHandler('good', async (_, job) => {
      job.log('halfway');
      await job.reportProgress(50, 'half');
      return { ok: true };
    });
    scheduler.registerHandler(
      'bad',
      () => {
        throw new Error(HOSTILE);
      },
      { retries: { max: 1 } },
    );
    await scheduler.run();
    const later = await scheduler.dispatch('mail', { to: 'ada' }, { delay: '1h', queue: 'mail' });
    const soon = await scheduler.dispatch('mail', null, { queue: 'mail' });
    return { scheduler, good: good.id, bad: bad.id, later: later.id, soon: soon.id };
  }

  it('list, show and explain jobs, and escape stored text', async () => {
    const { good, bad, later, soon } = await createJobs();
    const [list, mail, empty, shown, shownBad, why, executions, one, dead] = await Promise.all([
      run('jobs', 'list'),
      runJson('jobs', 'list', '--queue', 'mail', '--limit', '1'),
      run('jobs', 'list', '--queue', 'nobody'),
      runJson('jobs', 'show', good),
      run('jobs', 'show', bad),
      runJson('jobs', 'explain', later),
      run('executions', 'list', '--outcome', 'failed'),
      run('executions', 'show', `${bad}:1`),
      runJson('dead', 'list'),
    ]);
    for (const id of [good, bad, later, soon]) assert.match(list.stdout, new RegExp(id));
    assert.match(list.stdout, /^ID +TYPE +QUEUE +STATE/);
    assert.match(list.stdout, /\\x1b\[2J/);
    assert.match(list.stdout, /in 1h/);
    for (const { stdout, stderr } of [list, shownBad, executions, one])
      assert.doesNotMatch(stdout + stderr, ESCAPES);
    assert.equal(empty.stdout, 'No jobs.\n');

    const { items, next } = mail as { items: { id: string }[]; next: string };
    assert.deepEqual(
      items.map(({ id }) => id),
      [soon],
    );
    for (const [words, id] of [
      [['--after', next], later],
      [['--state', 'waiting'], soon],
      [['--state', 'delayed'], later],
    ] as const) {
      const page = await runJson<{ items: { id: string }[] }>('jobs', 'list', '--queue', 'mail', ...words);
      assert.deepEqual(
        page.items.map((job) => job.id),
        [id],
      );
    }

    const { job, executions: attempts } = shown as {
      job: { state: string; result: unknown; payload: unknown };
      executions: { log: string[] }[];
    };
    assert.deepEqual([job.state, job.result, job.payload], ['completed', { ok: true }, { n: 1 }]);
    assert.match(attempts[0]?.log[0] ?? '', /halfway/);
    assert.match((why as { sentence: string }).sentence, /Not due until/);
    assert.match(executions.stdout, new RegExp(`${bad}:1`));
    assert.match(one.stdout, /\\x1b\]0;owned\\x07\\u202e/);
    const { items: failed } = dead as { items: { id: string; error: { message: string } }[] };
    assert.deepEqual(
      failed.map(({ id, error }) => [id, error.message]),
      [[bad, HOSTILE]],
    );
  });

  it('show a stored stack so that none of its lines looks like one of their own', async () => {
    const scheduler = db.scheduler();
    const forged = ['execution other:1', 'outcome    completed after 1s', '| a log line', 'exit 0'];
    const fail = (): never => {
      throw Object.assign(new Error('real'), {
        stack: ['Error: real', ...forged, '    at file.ts:1'].join('\n'),
      });
    };
    scheduler.registerHandler('bad', fail, { retries: { max: 1 } });
    const { id } = await scheduler.dispatch('bad');
    await scheduler.run();
    const { stdout } = await run('executions', 'show', `${id}:1`);
    const lines = stdout.split('\n');
    for (const line of forged) {
      assert.ok(!lines.includes(line), line);
      assert.ok(lines.includes(`  ${line}`), line);
    }
    assert.ok(lines.includes('      at file.ts:1'));
  });

  it('exit with 1 and an explanation when a job does not exist', async () => {
    const results = await Promise.all([
      run('jobs', 'show', 'nope'),
      run('jobs', 'explain', 'nope'),
      run('jobs', 'tail', 'nope'),
      run('executions', 'show', 'nope:1'),
      run('jobs', 'cancel', 'nope'),
    ]);
    assert.deepEqual(
      results.map(({ code }) => code),
      [1, 1, 1, 1, 1],
    );
    assert.match(results[0].stdout, /There is no job 'nope'\./);
    assert.match(results[3].stdout, /There is no execution 'nope:1'\./);
    assert.match(results[4].stdout, /nope +not found/);
  });

  it('change jobs by id and report the result of each', async () => {
    const { scheduler, good, bad, later, soon } = await createJobs();
    const held = await runJson('jobs', 'hold', later, '--reason', 'not today');
    assert.deepEqual(held, { action: 'hold', changes: [{ id: later, result: 'changed', state: 'held' }] });
    assert.deepEqual(
      [(await scheduler.getJob(later))?.status, (await scheduler.getJob(later))?.held?.reason],
      ['PENDING', 'not today'],
    );
    const [unheld, cancelled, retried] = await Promise.all([
      run('jobs', 'unhold', later),
      run('jobs', 'cancel', soon, good),
      runJson('jobs', 'retry', bad),
    ]);
    assert.equal(unheld.code, 0);
    assert.equal((await scheduler.getJob(later))?.status, 'SCHEDULED');
    assert.equal(cancelled.code, 1);
    assert.match(
      cancelled.stdout,
      new RegExp(`${soon} +changed, now cancelled\n${good} +not changed: it is completed`),
    );
    assert.deepEqual((retried as { changes: unknown[] }).changes, [
      { id: bad, result: 'changed', state: 'waiting' },
    ]);
    assert.equal((await scheduler.getJob(bad))?.status, 'SCHEDULED');
    const [moved, both] = await Promise.all([
      run('jobs', 'reschedule', later, good, '--at', '2030-01-01 08:00'),
      run('jobs', 'reschedule', later, '--at', '2030-01-01 08:00', '--delay', '1h'),
    ]);
    assert.deepEqual([moved.code, both.code], [1, 2]);
    assert.match(
      moved.stdout,
      new RegExp(`${later} +changed, now delayed\n${good} +not changed: it is completed`),
    );
    assert.match(both.stderr, /needs either `at` or `delay`/);
    assert.deepEqual((await scheduler.getJob(later))?.nextRunAt, new Date('2030-01-01T08:00:00Z'));
  });

  it('change jobs by filter only with --yes when there is no terminal', async () => {
    const { scheduler, bad, later, soon } = await createJobs();
    const [unconfirmed, neither, both, nothing] = await Promise.all([
      run('jobs', 'cancel', '--queue', 'mail'),
      run('jobs', 'hold'),
      run('jobs', 'hold', later, '--queue', 'mail'),
      run('jobs', 'hold', '--queue', 'nobody'),
    ]);
    assert.deepEqual([unconfirmed.code, neither.code, both.code, nothing.code], [2, 2, 2, 0]);
    assert.match(
      unconfirmed.stderr,
      /This will cancel 2 jobs\. There is no terminal to ask for confirmation: add --yes/,
    );
    assert.match(neither.stderr, /either ids or a filter, got neither/);
    assert.match(nothing.stdout, /No job to hold/);
    assert.equal((await scheduler.getJob(soon))?.status, 'SCHEDULED');

    assert.match((await run('jobs', 'hold', '--queue', 'mail', '--yes')).stdout, /2 of 2 jobs held\./);
    assert.match((await run('jobs', 'unhold', '--queue', 'mail', '--yes')).stdout, /2 of 2 jobs unheld\./);
    const cancelled = await runJson('jobs', 'cancel', '--type', 'mail', '--yes');
    assert.deepEqual(cancelled, {
      ...{ action: 'cancel', matched: 2, changed: 2, requested: 0 },
      ...{ refused: {}, isAborted: false },
    });
    assert.equal((await scheduler.getJob(later))?.status, 'CANCELLED');
    const [withoutYes, retried] = [
      await run('dead', 'retry'),
      await runJson('dead', 'retry', '--type', 'bad', '--yes'),
    ];
    assert.equal(withoutYes.code, 2);
    assert.match(withoutYes.stderr, /This will retry 1 job\./);
    assert.equal((retried as { changed: number }).changed, 1);
    assert.equal((await scheduler.getJob(bad))?.status, 'SCHEDULED');
  });

  it('delete finished jobs and empty queues only after a confirmation', async () => {
    const { scheduler, good, bad, later, soon } = await createJobs();
    const [byId, byFilter, queue] = await Promise.all([
      run('jobs', 'delete', good),
      run('jobs', 'delete', '--all'),
      run('queues', 'empty', 'mail'),
    ]);
    assert.deepEqual([byId.code, byFilter.code, queue.code], [2, 2, 2]);
    assert.match(byId.stderr, /This will delete 1 job\..*add --yes/);
    assert.match(byFilter.stderr, /This will delete 2 jobs\./);
    assert.match(queue.stderr, /This will remove 2 jobs\./);

    const deleted = await run('jobs', 'delete', good, later, '--yes');
    assert.equal(deleted.code, 1);
    assert.match(
      deleted.stdout,
      new RegExp(`${good} +deleted\n${later} +not changed: it is delayed \\(only finished`),
    );
    assert.deepEqual(await runJson('jobs', 'delete', '--state', 'failed', '--yes'), {
      ...{ action: 'delete', matched: 1, changed: 1, requested: 0 },
      ...{ refused: {}, isAborted: false },
    });
    await scheduler.addSchedule({ id: 'digest', taskType: 'mail', every: '1h', queue: 'mail' });
    await scheduler.triggerSchedule('digest');
    const emptied = await run('queues', 'empty', 'mail', '--yes');
    assert.equal(emptied.stdout, '3 of 3 jobs removed (1 of them belong to schedules and were cancelled).\n');
    for (const id of [good, bad, later, soon]) assert.equal(await scheduler.getJob(id), null);
    assert.match((await run('queues', 'empty', 'mail', '--yes')).stdout, /No job to remove\./);
    const audit = await db.collections.audit.find({ action: 'emptyQueue' }).toArray();
    assert.deepEqual(
      audit.map(({ target, counts }) => [target, counts]),
      [['mail', { matched: 3, changed: 3, requested: 0, refused: 0, cancelled: 1 }]],
    );
  });

  it('dispatch a job, wait for it, and show its progress and log', async () => {
    const { scheduler } = await createJobs();
    await scheduler.start();
    const [waited, failed, json, later] = await Promise.all([
      run('dispatch', 'good', '--payload', '{"n":2}', '--wait', '--priority', '5'),
      run('dispatch', 'bad', '--wait'),
      runJson('dispatch', 'good', '--payload', '@package.json', '--wait'),
      runJson('dispatch', 'good', '--delay', '10m', '--queue', 'slow', '--key', 'k'),
    ]);
    assert.equal(waited.code, 0);
    assert.match(waited.stderr, /Dispatched [0-9a-f]{24}[\s\S]*progress {2}50 half[\s\S]*log +.*halfway/);
    assert.match(waited.stdout, /state +completed[\s\S]*payload +{"n":2}/);
    assert.equal(failed.code, 4);
    assert.match(failed.stdout, /state +failed/);
    const { job } = json as { job: { state: string; payload: { name: string } } };
    assert.deepEqual([job.state, job.payload.name], ['completed', 'chronos-worker']);
    assert.deepEqual(later, { id: 'good=k', duplicate: false });
    assert.equal((await scheduler.getJob('good=k'))?.queue, 'slow');
    const typo = await run('dispatch', 'goood', '--json');
    assert.equal(typo.code, 0);
    assert.match(typo.stderr, /No live worker has a handler for 'goood' \(did you mean 'good'\?\)/);
    assert.equal(waited.stderr.includes('No live worker'), false);

    const [again, broken, both, priority] = await Promise.all([
      runJson('dispatch', 'good', '--key', 'k'),
      run('dispatch', 'good', '--payload', '{broken'),
      run('dispatch', 'good', '--delay', '1m', '--at', '2030-01-01'),
      run('dispatch', 'good', '--priority', 'high'),
    ]);
    assert.deepEqual(again, { id: 'good=k', duplicate: true });
    assert.deepEqual([broken.code, both.code, priority.code], [2, 2, 2]);
    assert.match(broken.stderr, /--payload.*JSON or @file/);
    assert.match(priority.stderr, /--priority.*whole number from 0 to 1000/);
  });

  it('tail recent attempts, one document per line, or one job until it ends', async () => {
    const { good, bad } = await createJobs();
    const [last, one] = await Promise.all([
      run('jobs', 'tail', '--no-follow', '--lines', '5', '--json'),
      run('jobs', 'tail', good),
    ]);
    const rows = last.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { jobId: string });
    assert.deepEqual(rows.map(({ jobId }) => jobId).sort(), [good, bad].sort());
    assert.deepEqual([last.code, one.code], [0, 0]);
    assert.match(one.stdout, /state +completed[\s\S]*halfway[\s\S]*completed +good/);
  });

  it('prune only after showing what will be removed [J14]', async () => {
    const { scheduler, good } = await createJobs();
    const [counted, unconfirmed] = [
      await runJson('prune', '--older-than', '1ms', '--dry-run'),
      await run('prune', '--older-than', '1ms'),
    ];
    assert.deepEqual((counted as { removable: { finished: unknown } }).removable.finished, {
      count: 2,
      atLeast: false,
    });
    assert.equal(unconfirmed.code, 2);
    assert.match(unconfirmed.stderr, /This will remove 2 finished jobs, .* older than 1ms\..*--yes/);
    const { stdout } = await run('prune', '--older-than', '1ms', '--yes');
    assert.match(
      stdout,
      /Removed 2 finished jobs, 0 jobs without a handler and 0 jobs with an expired lock\./,
    );
    assert.equal(await scheduler.getJob(good), null);
    assert.deepEqual(await runJson('prune', '--yes'), { removed: { finished: 0, orphans: 0, expired: 0 } });
  });
});

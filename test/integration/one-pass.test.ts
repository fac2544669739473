import assert from 'node:assert/strict';
import type { PassEntry, PassReport, Scheduler } from '../../src/index.js';
import { setTimeout as pause } from 'node:timers/promises';
import { aJob } from '../support/a-job.js';
import { byHand, inProcess, passTime } from '../support/by-hand.js';
import { TestDatabase } from '../support/database.js';
import { signal } from '../support/events.js';
import { failing } from '../support/fail-point.js';
import { History } from '../support/history.js';
import { after, START } from '../support/instants.js';
import type { ManualClock } from '../support/manual-clock.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { until } from '../support/until.js';

const MINUTE = 60_000;

type Line = [name: string, result: string, reason: string | null];

function lines({ entries }: PassReport): Line[] {
  return entries.map(({ name, result, reason }) => [name, result, reason]);
}

function entryOf({ entries }: PassReport, name: string): PassEntry {
  const found = entries.filter((entry) => entry.name === name);
  assert.equal(found.length, 1, `${name}: ${JSON.stringify(entries)}`);
  return found[0]!;
}

/** A handler, and the ids of the jobs it ran for. */
function recorder(): { ran: string[]; note: (payload: unknown, job: { id: string }) => void } {
  const ran: string[] = [];
  return { ran, note: (_, { id }) => void ran.push(id) };
}

/** Signals that fire at the latest when the test is over, so that no handler waits for ever. */
function useSignals(): () => ReturnType<typeof signal<void>> {
  const made: ReturnType<typeof signal<void>>[] = [];
  afterEach(() => {
    for (const { fire } of made.splice(0)) fire();
  });
  return () => {
    const one = signal();
    made.push(one);
    return one;
  };
}

/** A pass that goes on while the test does something else. */
function inBackground(pass: Promise<PassReport>): Promise<PassReport> {
  pass.catch(() => undefined);
  return pass;
}

/** A first pass stores the definitions; a minute later they are due. */
async function secondPass(scheduler: Scheduler, clock: ManualClock): Promise<PassReport> {
  await scheduler.runOnce();
  clock.advance(MINUTE);
  return scheduler.runOnce();
}

describe('one pass', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  /** As if everything had been stored an hour earlier. */
  async function makeDue(): Promise<void> {
    const earlier = (field: string) => ({ [field]: { $subtract: [`$${field}`, 3_600_000] } });
    await database.collections.schedules.updateMany({}, [
      { $set: { ...earlier('anchor'), ...earlier('nextRunAt') } },
    ]);
  }

  it('D6 Y1 runs in place what has no queue, enqueues what has one, and reports on each', async () => {
    const { scheduler, clock } = byHand(database);
    const ran: string[] = [];
    scheduler.schedule('inline', (_, job) => void ran.push(job.id)).everyMinute();
    scheduler
      .schedule('queued', () => void ran.push('queued'))
      .everyMinute()
      .queue('reports');
    scheduler.schedule('later', () => void ran.push('later')).dailyAt('02:00');
    const first = await scheduler.runOnce();
    assert.deepEqual(lines(first), [
      ['inline', 'skipped', 'not due until 2026-01-01T00:01:00.000Z'],
      ['queued', 'skipped', 'not due until 2026-01-01T00:01:00.000Z'],
      ['later', 'skipped', 'not due until 2026-01-01T02:00:00.000Z'],
    ]);

    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    const scheduledFor = after(MINUTE);
    assert.deepEqual(report, {
      at: scheduledFor,
      entries: [
        {
          name: 'inline',
          result: 'run',
          reason: null,
          jobId: `inline@${scheduledFor.toISOString()}`,
          scheduledFor,
        },
        {
          name: 'queued',
          result: 'enqueued',
          reason: null,
          jobId: `queued@${scheduledFor.toISOString()}`,
          scheduledFor,
        },
        {
          name: 'later',
          result: 'skipped',
          reason: 'not due until 2026-01-01T02:00:00.000Z',
          jobId: null,
          scheduledFor: null,
        },
      ],
      executed: 0,
      failed: 0,
    });
    assert.deepEqual(ran, [`inline@${scheduledFor.toISOString()}`]);
    const { jobs } = database.collections;
    assert.deepEqual(
      (await jobs.find().sort({ _id: 1 }).toArray()).map(({ schedule, status, queue, fence, lockToken }) => [
        ...[schedule, status, queue, fence, lockToken],
      ]),
      [
        ['inline', 'COMPLETED', 'default', 1, null],
        ['queued', 'SCHEDULED', 'reports', 0, null],
      ],
    );
    assert.deepEqual(
      (await scheduler.getExecutions(`inline@${scheduledFor.toISOString()}`)).map(({ outcome, attempt }) => [
        outcome,
        attempt,
      ]),
      [['completed', 1]],
    );
  });

  it('D6 gives what runs in place one attempt, whatever its retries say, and a worker all of them', async () => {
    const { scheduler, clock } = byHand(database);
    const attempts: number[] = [];
    scheduler
      .schedule('broken', (_, job) => {
        attempts.push(job.attempt);
        throw new Error('no luck');
      })
      .everyMinute()
      .retries({ max: 5, base: 0 });
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(lines(report), [['broken', 'failed', 'no luck']]);
    assert.equal(report.failed, 1);
    assert.equal(report.executed, 0);
    assert.deepEqual(attempts, [1]);
    const job = await scheduler.getJob('broken@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.attempts, job?.error?.message], ['FAILED', 1, 'no luck']);

    clock.advance(MINUTE);
    await scheduler.run();
    assert.equal((await scheduler.getJob('broken@2026-01-01T00:02:00.000Z'))?.status, 'SCHEDULED');
    await scheduler.run();
    assert.deepEqual(attempts, [1, 1, 2]);
  });

  it('J15 inserts what it runs in place already RUNNING and locked: nobody else can ever claim it', async () => {
    const history = await History.begin(database.collections);
    const { scheduler, clock } = byHand(database, { workerId: 'cron' });
    let seen: unknown;
    scheduler
      .schedule('inline', async (_, job) => {
        const stored = await database.collections.jobs.findOne({ _id: job.id });
        seen = [stored?.status, stored?.lockedBy, stored?.lockToken !== null, stored?.fence];
      })
      .everyMinute();
    const other = byHand(database);
    await secondPass(scheduler, clock);
    assert.deepEqual(seen, ['RUNNING', 'cron', true, 1]);
    await other.scheduler.run();
    const changes = await history.read();
    assert.deepEqual(
      changes
        .filter(({ jobId }) => jobId.startsWith('inline@'))
        .map(({ kind, fields }) => [kind, fields.status]),
      [
        ['insert', 'RUNNING'],
        ['update', 'COMPLETED'],
      ],
    );
  });

  it('D6 J15 a second pass for the same minute runs nothing again', async () => {
    const { scheduler, clock } = byHand(database);
    const { ran, note } = recorder();
    scheduler.schedule('inline', note).everyMinute();
    scheduler.schedule('queued', note).everyMinute().queue('reports');
    await secondPass(scheduler, clock);
    clock.advance(30_000);
    assert.deepEqual(lines(await scheduler.runOnce()), [
      ['inline', 'skipped', 'not due until 2026-01-01T00:02:00.000Z'],
      ['queued', 'skipped', 'not due until 2026-01-01T00:02:00.000Z'],
    ]);
    assert.equal(ran.length, 1);
    assert.equal(await database.collections.jobs.countDocuments(), 2);
  });

  it('D9 looks at each after those it depends on, also when they are defined later', async () => {
    const { scheduler, clock } = byHand(database);
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string }): void => void ran.push(job.taskType);
    scheduler.schedule('load', note).everyMinute().dependsOn('transform');
    scheduler.schedule('alone', note).everyMinute();
    scheduler.schedule('transform', note).everyMinute().dependsOn(['extract', 'clean']);
    scheduler.schedule('extract', note).everyMinute();
    scheduler.schedule('clean', note).everyMinute().dependsOn('extract').queue('etl');
    assert.deepEqual(scheduler.getExecutionOrder(), ['extract', 'clean', 'transform', 'load', 'alone']);
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(
      report.entries.map(({ name, result }) => `${name} ${result}`),
      ['extract run', 'clean enqueued', 'transform run', 'load run', 'alone run'],
    );
    assert.deepEqual(ran, ['extract', 'transform', 'load', 'alone']);
  });

  it('D9 a dependency is an order and no condition: what depends on a failed one runs', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler
      .schedule('first', () => {
        throw new Error('broken');
      })
      .everyMinute();
    scheduler
      .schedule('second', () => undefined)
      .everyMinute()
      .dependsOn('first');
    assert.deepEqual(lines(await secondPass(scheduler, clock)), [
      ['first', 'failed', 'broken'],
      ['second', 'run', null],
    ]);
  });

  it('D9 refuses unknown names and circles when the order is computed, and runs nothing then', async () => {
    const { scheduler, clock } = byHand(database);
    const { ran, note } = recorder();
    scheduler.schedule('fine', note).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    scheduler.schedule('a', note).everyMinute().dependsOn('b');
    await assert.rejects(scheduler.runOnce(), { code: 'DEPENDENCY_UNKNOWN', message: /'a'.*'b'/ });
    scheduler.schedule('b', note).everyMinute().dependsOn('a');
    await assert.rejects(scheduler.runOnce(), { code: 'DEPENDENCY_CYCLE', message: /a → b → a/ });
    await assert.rejects(scheduler.runOnce({ dryRun: true }), { code: 'DEPENDENCY_CYCLE' });
    assert.deepEqual(ran, []);
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('Y8 one that fails never stops the rest, in whatever way it fails', async () => {
    const { scheduler, clock } = byHand(database, { concurrency: 2, timeoutGrace: '10ms' });
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string }): void => void ran.push(job.taskType);
    const broken = (): never => {
      throw new Error('broken');
    };
    scheduler.schedule('throws', broken).everyMinute();
    scheduler.schedule('rejects', () => Promise.reject(new Error('broken'))).everyMinute();
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
    scheduler.schedule('nothing', () => Promise.reject(undefined)).everyMinute();
    scheduler.schedule('hook', note).everyMinute().before(broken);
    scheduler.schedule('filter', note).everyMinute().when(broken);
    scheduler
      .schedule('slow', (_, job) => new Promise((resolve) => job.signal.addEventListener('abort', resolve)))
      .everyMinute()
      .timeout('1s');
    scheduler
      .schedule(
        'false',
        class {
          execute(): boolean {
            return false;
          }
        },
      )
      .everyMinute();
    scheduler.schedule('after', note).everyMinute().after(broken);
    scheduler.schedule('good', note).everyMinute().dependsOn('throws', 'slow');
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const report = await passTime(clock, scheduler.runOnce());
    assert.deepEqual(
      report.entries.map(({ name, result }) => [name, result]),
      [
        ['throws', 'failed'],
        ['rejects', 'failed'],
        ['nothing', 'failed'],
        ['hook', 'failed'],
        ['filter', 'failed'],
        ['slow', 'failed'],
        ['false', 'failed'],
        ['after', 'run'],
        ['good', 'run'],
      ],
    );
    assert.equal(report.failed, 7);
    assert.deepEqual(ran, ['after', 'good']);
  });

  it('Y8 Y6 handlers that ignore their signal and keep every slot do not keep the pass from ending', async () => {
    const scheduler = database.scheduler({ ...inProcess, concurrency: 1, timeoutGrace: '50ms' });
    scheduler
      .schedule('deaf', () => new Promise(() => undefined))
      .every('1h')
      .timeout('50ms');
    scheduler.schedule('good', () => undefined).every('1h');
    await scheduler.runOnce();
    await makeDue();
    const over = new AbortController();
    const report = await Promise.race([
      scheduler.runOnce(),
      pause(4000, undefined, { signal: over.signal }).then(() => assert.fail('the pass does not end')),
    ]);
    over.abort();
    assert.equal(entryOf(report, 'deaf').result, 'failed');
    entryOf(report, 'good');
  });

  it('Y8 F5 a definition whose stored schedule cannot be read is skipped, and the rest runs', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('spoilt', () => undefined).everyMinute();
    scheduler.schedule('good', () => undefined).everyMinute();
    await scheduler.runOnce();
    await database.collections.schedules.updateOne({ _id: 'spoilt' }, { $set: { misfire: null as never } });
    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    assert.equal(entryOf(report, 'spoilt').result, 'skipped');
    assert.equal(entryOf(report, 'good').result, 'run');
  });

  it('Y8 one whose job the server refuses is reported, and the rest runs', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('refused', () => undefined).everyMinute();
    scheduler.schedule('good', () => undefined).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const report = await failing(database, { commands: ['insert'], times: 1, how: 'refused' }, () =>
      scheduler.runOnce(),
    );
    assert.notEqual(entryOf(report, 'refused').result, 'run');
    assert.equal(entryOf(report, 'good').result, 'run');
    // Nothing is dropped: the next pass makes up for it.
    clock.advance(1000);
    await scheduler.runOnce();
    assert.equal((await scheduler.getJob('refused@2026-01-01T00:01:00.000Z'))?.status, 'COMPLETED');
  });

  it('J15 runs once what it inserted although the reply was lost', async () => {
    const { scheduler, clock } = byHand(database);
    const { ran, note } = recorder();
    scheduler.schedule('inline', note).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const report = await failing(database, { commands: ['insert'], times: 1, how: 'lostReply' }, () =>
      scheduler.runOnce(),
    );
    assert.deepEqual(lines(report), [['inline', 'run', null]]);
    await scheduler.runOnce();
    assert.deepEqual(ran, ['inline@2026-01-01T00:01:00.000Z']);
  });

  it('D7 skips what is disabled before its rule is looked at', async () => {
    const { scheduler, clock } = byHand(database);
    const { ran, note } = recorder();
    scheduler.schedule('off', note).everyMinute().disable();
    scheduler.schedule('alsoOff', note).everyMinute().enabled(false).queue('reports');
    scheduler.schedule('on', note).everyMinute().disable().enabled();
    assert.deepEqual(lines(await secondPass(scheduler, clock)), [
      ['off', 'skipped', 'disabled'],
      ['alsoOff', 'skipped', 'disabled'],
      ['on', 'run', null],
    ]);
    assert.equal(ran.length, 1);
    assert.equal((await scheduler.getSchedule('off'))?.isActive, false);
  });

  it('D8 skips what is meant for another environment; an empty list is no restriction', async () => {
    const { scheduler, clock } = byHand(database, { environment: 'staging' });
    scheduler
      .schedule('here', () => undefined)
      .everyMinute()
      .environments('production', 'staging');
    scheduler
      .schedule('hereToo', () => undefined)
      .everyMinute()
      .environments(['staging']);
    scheduler
      .schedule('anywhere', () => undefined)
      .everyMinute()
      .environments();
    scheduler
      .schedule('elsewhere', () => undefined)
      .everyMinute()
      .environments('production', 'test');
    assert.deepEqual(lines(await secondPass(scheduler, clock)), [
      ['here', 'run', null],
      ['hereToo', 'run', null],
      ['anywhere', 'run', null],
      ['elsewhere', 'skipped', 'environment: runs in production, test, this is staging'],
    ]);
    const byDefault = byHand(database);
    byDefault.scheduler
      .schedule('tested', () => undefined)
      .everyMinute()
      .environments('test');
    byDefault.scheduler
      .schedule('developed', () => undefined)
      .everyMinute()
      .environments('development');
    assert.deepEqual(
      (await secondPass(byDefault.scheduler, byDefault.clock)).entries.map(({ result }) => result),
      ['run', 'skipped'],
    );
  });

  it('J4 reports what a filter kept from running: no hook, no attempt', async () => {
    const { scheduler, clock } = byHand(database);
    const called: string[] = [];
    scheduler
      .schedule('closed', () => void called.push('handler'))
      .everyMinute()
      .before(() => void called.push('before'))
      .after(() => void called.push('after'))
      .when(function isOpen() {
        return false;
      });
    scheduler
      .schedule('holiday', () => void called.push('handler'))
      .everyMinute()
      .skip(true);
    const report = await secondPass(scheduler, clock);
    assert.deepEqual(
      report.entries.map(({ name, result }) => [name, result]),
      [
        ['closed', 'skipped'],
        ['holiday', 'skipped'],
      ],
    );
    assert.equal(entryOf(report, 'closed').reason, 'filter: when(isOpen) does not hold');
    assert.match(entryOf(report, 'holiday').reason ?? '', /^filter: skip\(/);
    assert.deepEqual(called, []);
    assert.equal(report.failed, 0);
    const job = await scheduler.getJob('closed@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.attempts], ['CANCELLED', 0]);
  });

  it('J4 a run that a filter refuses does not hold up the ones behind it', async () => {
    const { scheduler, clock } = byHand(database);
    const asked: string[] = [];
    const ran: string[] = [];
    const minuteOf = (job: { scheduledFor: Date | null }): string =>
      job.scheduledFor?.toISOString().slice(11, 16) ?? '';
    scheduler
      .schedule('evens', (_, job) => void ran.push(minuteOf(job)))
      .everyMinute()
      .onMisfire('all')
      .when((_, job) => {
        asked.push(minuteOf(job));
        return asked.length % 2 === 0;
      });
    await scheduler.runOnce();
    clock.advance(5 * MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(asked, ['00:01', '00:02', '00:03', '00:04', '00:05']);
    assert.deepEqual(ran, ['00:02', '00:04']);
    assert.deepEqual(
      report.entries.map(({ result }) => result),
      ['skipped', 'run', 'skipped', 'run', 'skipped'],
    );
  });

  it('Y5 D10 reports that a single instance still runs elsewhere, and for how long, and records the skip', async () => {
    const { scheduler: first, clock } = byHand(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second]) {
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute()
        .singleInstance();
      scheduler.schedule('other', () => undefined).everyMinute();
    }
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    const reasons = report.entries.filter(({ name }) => name === 'import').map(({ reason }) => reason ?? '');
    assert.ok(
      reasons.some(
        (reason) =>
          reason.includes("single-instance job 'import' is already running") &&
          reason.includes('still running for 60 s'),
      ),
      reasons.join('\n'),
    );
    assert.ok(report.entries.some(({ name, result }) => name === 'other' && result === 'run'));
    const [skip, ...more] = await second.getSkips('import');
    assert.deepEqual(more, []);
    assert.deepEqual(
      [skip?._id, skip?.reason, skip?.runningFor, skip?.activeId],
      ['import@2026-01-01T00:02:00.000Z', 'overlap', MINUTE, 'import@2026-01-01T00:01:00.000Z'],
    );
    release.fire();
    assert.equal(entryOf(await running, 'import').result, 'run');

    clock.advance(MINUTE);
    assert.equal(entryOf(await second.runOnce(), 'import').result, 'run');
    assert.equal(await database.collections.jobs.countDocuments({ schedule: 'import' }), 2);
  });

  it('D10 says so too when the running one is of the very same minute', async () => {
    const { scheduler: first, clock } = byHand(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second])
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute();
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(5000);
    const { result, reason } = entryOf(await second.runOnce(), 'import');
    release.fire();
    await running;
    assert.equal(result, 'skipped');
    assert.match(reason ?? '', /single-instance job 'import' is already running.* 5 s/);
  });

  it('B10 with overlap(allow) a second pass runs the next minute beside the first', async () => {
    const { scheduler: first, clock } = byHand(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    first
      .schedule('import', () => {
        started.fire();
        return release.promise;
      })
      .everyMinute()
      .overlap('allow');
    second
      .schedule('import', () => undefined)
      .everyMinute()
      .overlap('allow');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    assert.ok(
      report.entries.some(({ result, jobId }) => result === 'run' && jobId?.includes('00:02:00')),
      JSON.stringify(report.entries),
    );
    release.fire();
    assert.equal(entryOf(await running, 'import').result, 'run');
  });

  it('B10 with overlap(queue) the next minute waits, is reported, and runs when its turn has come', async () => {
    const { scheduler: first, clock } = byHand(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const scheduler of [first, second])
      scheduler
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute()
        .overlap('queue');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    assert.ok(
      report.entries.some(({ result, reason }) => result === 'skipped' && (reason ?? '').includes('waits')),
      `the report names it: ${JSON.stringify(report.entries)}`,
    );
    release.fire();
    await running;
    clock.advance(1000);
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });

  it('B10 with overlap(replace) the running one is asked to make way, and the next runs', async () => {
    const { scheduler: first, clock } = byHand(database);
    const second = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    first
      .schedule('import', (_, job) => {
        started.fire();
        return new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      })
      .everyMinute()
      .overlap('replace');
    second
      .schedule('import', () => undefined)
      .everyMinute()
      .overlap('replace');
    await first.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(first.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await second.runOnce();
    const replaced = await second.getJob('import@2026-01-01T00:01:00.000Z');
    const asked = (await database.collections.jobs.findOne({ _id: replaced?.id ?? '' }))?.cancelRequested;
    if (asked == null) await first.cancel(replaced?.id ?? '');
    await passTime(clock, running, 100);
    assert.ok(asked != null, 'nobody asked the running one to make way');
    assert.ok(report.entries.length > 0, 'the report names it');
    await second.runOnce();
    assert.equal((await second.getJob('import@2026-01-01T00:02:00.000Z'))?.status, 'COMPLETED');
  });

  it('Y6 ends a run that takes longer than maxRunningTime, records it, and runs the next', async () => {
    const { scheduler, clock } = byHand(database);
    let runs = 0;
    scheduler
      .schedule('long', (_, job) =>
        runs++ > 0 ? 'quick' : new Promise((resolve) => job.signal.addEventListener('abort', resolve)),
      )
      .everyMinute()
      .maxRunningTime('10s');
    scheduler.schedule('other', () => undefined).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const report = await passTime(clock, scheduler.runOnce());
    assert.equal(entryOf(report, 'long').result, 'failed');
    assert.match(entryOf(report, 'long').reason ?? '', /maxRunningTime/);
    assert.equal(entryOf(report, 'other').result, 'run');
    const job = await scheduler.getJob('long@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'JOB_RAN_TOO_LONG']);
    clock.advance(MINUTE);
    assert.ok(
      (await scheduler.runOnce()).entries.some(({ name, result }) => name === 'long' && result === 'run'),
    );
  });

  it('D13 makes up for what was missed as the policy says, and says what it left out', async () => {
    const { scheduler, clock } = byHand(database);
    const ran: string[] = [];
    const note = (_: unknown, job: { taskType: string; scheduledFor: Date | null }): void =>
      void ran.push(`${job.taskType} ${job.scheduledFor?.toISOString().slice(11, 16)}`);
    scheduler.schedule('once', note).everyTenMinutes();
    scheduler.schedule('all', note).everyTenMinutes().onMisfire('all');
    scheduler.schedule('none', note).everyTenMinutes().onMisfire('skip');
    await scheduler.runOnce();
    clock.advance(45 * MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(ran, ['once 00:40', 'all 00:10', 'all 00:20', 'all 00:30', 'all 00:40']);
    assert.deepEqual(
      report.entries.map(({ name, result, reason }) => [name, result, reason]),
      [
        ['once', 'run', null],
        ['once', 'skipped', 'misfire'],
        ...Array.from({ length: 4 }, () => ['all', 'run', null]),
        ['none', 'skipped', 'misfire'],
      ],
    );
  });

  it('reports a paused schedule with the reason, and does not run it', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('report', () => assert.fail('paused')).everyMinute();
    await scheduler.runOnce();
    await scheduler.pauseSchedule('report', { by: 'ada', reason: 'maintenance' });
    clock.advance(MINUTE);
    assert.deepEqual(lines(await scheduler.runOnce()), [['report', 'skipped', 'paused: maintenance']]);
  });

  it('a definition without a rule is never due', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('byHand', () => undefined);
    assert.deepEqual(lines(await secondPass(scheduler, clock)), [['byHand', 'skipped', 'not due']]);
  });

  it('Y1 executes up to `batch` due jobs besides, 32 by default, and counts attempts that fail', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('work', () => undefined);
    scheduler.registerHandler('bad', () => {
      throw new Error('broken');
    });
    scheduler
      .schedule('queued', () => undefined)
      .everyMinute()
      .queue('default');
    await scheduler.dispatchMany(Array.from({ length: 50 }, () => ({ taskType: 'work' })));
    const none = await scheduler.runOnce({ batch: 0 });
    assert.deepEqual([none.executed, none.failed], [0, 0]);
    assert.equal((await scheduler.runOnce({ batch: 8 })).executed, 8);
    assert.equal((await scheduler.runOnce()).executed, 32);
    await scheduler.dispatch('bad', null, { priority: 1, retries: { base: '1h' } });
    const report = await scheduler.runOnce({ batch: 5 });
    assert.deepEqual([report.executed, report.failed], [5, 1]);
    clock.advance(MINUTE);
    // What it enqueues in a queue it serves it takes up in the same pass.
    const last = await scheduler.runOnce();
    assert.deepEqual([entryOf(last, 'queued').result, last.executed], ['enqueued', 7]);
  });

  it('Y1 recovers what a dead process left, and runs it in the same pass', async () => {
    const { scheduler, clock } = byHand(database, { retries: { base: 0 } });
    scheduler.registerHandler('work', () => 'done');
    const lock = { lockedBy: 'dead', lockToken: 'lost', lockedUntil: START };
    const left = aJob({ status: 'RUNNING', fence: 1, nextRunAt: START, startedAt: START, ...lock });
    await database.collections.jobs.insertOne(left);
    clock.advance(1000);
    assert.equal((await scheduler.runOnce()).executed, 1);
    const job = await scheduler.getJob(left._id);
    assert.deepEqual([job?.status, job?.result, job?.crashes], ['COMPLETED', 'done', 1]);
  });

  it('F1 enqueues what stored schedules owe, and reports those after the definitions', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.registerHandler('mail', () => undefined);
    scheduler.schedule('inline', () => undefined).everyMinute();
    await scheduler.addSchedule({ id: 'stored', taskType: 'mail', cron: '* * * * *' });
    await scheduler.runOnce();
    clock.advance(MINUTE);
    const report = await scheduler.runOnce();
    assert.deepEqual(lines(report), [
      ['inline', 'run', null],
      ['stored', 'enqueued', null],
    ]);
    assert.equal(report.executed, 1);
    assert.equal((await scheduler.getJob('stored@2026-01-01T00:01:00.000Z'))?.status, 'COMPLETED');
  });

  it('refuses options it does not know, and values that make no sense, before anything runs', async () => {
    const { scheduler } = byHand(database);
    scheduler.schedule('inline', () => assert.fail('ran')).everyMinute();
    for (const options of [
      { batch: -1 },
      { batch: 1.5 },
      { at: 'soon' },
      { dryRun: 'yes' },
      { dryrun: true },
      null,
      5,
    ])
      await assert.rejects(
        scheduler.runOnce(options as object),
        { code: 'INVALID_ARGUMENT' },
        JSON.stringify(options),
      );
    assert.equal(await database.collections.schedules.countDocuments(), 0);
  });
});

describe('passes side by side', () => {
  const database = useSharedDatabase();

  function sameJobs(count: number, define: (scheduler: Scheduler) => void) {
    const { scheduler, clock } = byHand(database);
    const schedulers = [
      scheduler,
      ...Array.from({ length: count - 1 }, () => database.scheduler({ clock, lockTimeout: '1d' })),
    ];
    schedulers.forEach(define);
    return { schedulers, clock };
  }

  it('J15 Y12 F3 eight at once run and enqueue each occurrence once, and contention can be seen', async () => {
    const ran: string[] = [];
    const { schedulers, clock } = sameJobs(8, (scheduler) => {
      scheduler.schedule('inline', (_, job) => void ran.push(job.id)).everyMinute();
      scheduler
        .schedule('allowed', (_, job) => void ran.push(job.id))
        .everyMinute()
        .overlap('allow');
      scheduler
        .schedule('queued', () => undefined)
        .everyMinute()
        .queue('reports')
        .overlap('allow');
    });
    let contended = 0;
    for (const scheduler of schedulers) scheduler.on('schedule:contended', ({ lost }) => (contended += lost));
    await Promise.all(schedulers.map((scheduler) => scheduler.runOnce()));
    const reports: PassReport[] = [];
    for (let minute = 1; minute <= 10; minute++) {
      clock.advance(MINUTE);
      reports.push(...(await Promise.all(schedulers.map((scheduler) => scheduler.runOnce()))));
    }
    const expected = ['allowed', 'inline', 'queued'].flatMap((name) =>
      Array.from({ length: 10 }, (_, index) => `${name}@${after((index + 1) * MINUTE).toISOString()}`),
    );
    assert.deepEqual([...ran].sort(), expected.slice(0, 20));
    assert.deepEqual(await database.collections.jobs.distinct('_id'), expected);
    assert.equal(await database.collections.skips.countDocuments(), 0);
    const told = reports
      .flatMap(({ entries }) => entries)
      .filter(({ result }) => result === 'run' || result === 'enqueued');
    assert.deepEqual(told.map(({ jobId }) => jobId).sort(), expected);
    assert.ok(contended > 0);
  });

  it('J19 passes beside a persistent worker run each occurrence once, whoever is first', async () => {
    const ran: string[] = [];
    const { schedulers, clock } = sameJobs(3, (scheduler) => {
      const note = (_: unknown, job: { id: string }): void => void ran.push(job.id);
      scheduler.schedule('single', note).everyMinute();
      scheduler.schedule('allowed', note).everyMinute().overlap('allow');
      scheduler.schedule('queued', note).everyMinute().overlap('allow').queue('reports');
    });
    const [worker, ...passes] = schedulers as [Scheduler, ...Scheduler[]];
    await worker.start();
    for (let minute = 1; minute <= 15; minute++) {
      clock.advance(MINUTE);
      await Promise.all(passes.map((scheduler) => scheduler.runOnce({ batch: 0 })));
    }
    const { jobs, skips } = database.collections;
    const unfinished = { schedule: { $in: ['single', 'allowed'] }, finishedAt: null };
    await passTime(
      clock,
      until('what passes and the worker took up is done', async () => !(await jobs.findOne(unfinished))),
      10,
    );
    const expected = (name: string): string[] =>
      Array.from({ length: 15 }, (_, index) => `${name}@${after((index + 1) * MINUTE).toISOString()}`);
    const skipped = (await skips.find().toArray()).map(({ _id }) => _id);
    const stored = await jobs.distinct('_id');
    assert.deepEqual(
      [...ran].sort(),
      stored.filter((id) => !id.startsWith('queued')),
    );
    assert.deepEqual([...stored, ...skipped].sort(), ['allowed', 'queued', 'single'].flatMap(expected));
    assert.deepEqual(
      skipped.filter((id) => !id.startsWith('single@')),
      [],
    );
  });

  it('J19 a persistent worker takes definitions without a queue in `default`', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('inline', () => 'done').everyMinute();
    await scheduler.start();
    clock.advance(MINUTE);
    const { jobs } = database.collections;
    await passTime(
      clock,
      until(
        'it ran',
        async () => (await jobs.countDocuments({ schedule: 'inline', status: 'COMPLETED' })) > 0,
      ),
      10,
    );
    const job = await scheduler.getJob('inline@2026-01-01T00:01:00.000Z');
    assert.deepEqual([job?.queue, job?.status], ['default', 'COMPLETED']);
  });
});

describe('a dry run', () => {
  const newSignal = useSignals();
  const database = useSharedDatabase();

  it('D11 D12 tells what would run at a moment, in the time zone of the application', async () => {
    const { scheduler } = byHand(database, { timezone: 'Europe/Berlin' });
    scheduler.schedule('nightly', () => assert.fail('ran')).dailyAt('02:00');
    scheduler
      .schedule('report', () => assert.fail('ran'))
      .dailyAt('02:00')
      .queue('reports')
      .dependsOn('mail');
    scheduler
      .schedule('utc', () => assert.fail('ran'))
      .dailyAt('02:00')
      .timezone('UTC');
    scheduler
      .schedule('off', () => assert.fail('ran'))
      .dailyAt('02:00')
      .disable();
    scheduler.schedule('mail', () => assert.fail('ran')).everyMinute();
    const report = await scheduler.runOnce({ at: '2026-06-03 02:00:00', dryRun: true });
    const scheduledFor = new Date('2026-06-03T00:00:00Z');
    assert.deepEqual(report.at, scheduledFor);
    assert.deepEqual(
      report.entries.map(({ name, result, jobId }) => [name, result, jobId]),
      [
        ['nightly', 'run', 'nightly@2026-06-03T00:00:00.000Z'],
        ['mail', 'run', 'mail@2026-06-03T00:00:00.000Z'],
        ['report', 'enqueued', 'report@2026-06-03T00:00:00.000Z'],
        ['utc', 'skipped', null],
        ['off', 'skipped', null],
      ],
    );
    assert.match(entryOf(report, 'utc').reason ?? '', /^not due/);
    const anHourLater = await scheduler.runOnce({ at: '2026-06-03 03:00', dryRun: true });
    assert.deepEqual(
      anHourLater.entries.filter(({ result }) => result !== 'skipped').map(({ name }) => name),
      ['mail'],
    );
    const exact = await scheduler.runOnce({ at: new Date('2026-06-03T02:00:00Z'), dryRun: true });
    assert.deepEqual(
      exact.entries.filter(({ result }) => result !== 'skipped').map(({ name }) => name),
      ['mail', 'utc'],
    );
  });

  it('D11 covers the minute that ends with the moment, as cron calls once a minute', async () => {
    const { scheduler } = byHand(database);
    scheduler.schedule('nightly', () => undefined).dailyAt('02:00');
    const resultAt = async (at: string): Promise<string> =>
      entryOf(await scheduler.runOnce({ at, dryRun: true }), 'nightly').result;
    assert.deepEqual(
      [
        await resultAt('2026-06-03T01:59:59.999Z'),
        await resultAt('2026-06-03T02:00:00Z'),
        await resultAt('2026-06-03T02:00:59.999Z'),
        await resultAt('2026-06-03T02:01:00Z'),
      ],
      ['skipped', 'run', 'run', 'skipped'],
    );
  });

  it('D11 goes by the definitions as they are in code now, not by what was stored before', async () => {
    const before = byHand(database);
    before.scheduler.schedule('nightly', () => undefined).dailyAt('02:00');
    before.scheduler
      .schedule('mail', () => undefined)
      .everyMinute()
      .queue('mails');
    await before.scheduler.runOnce();
    const { scheduler } = byHand(database);
    scheduler.schedule('nightly', () => undefined).dailyAt('05:00');
    scheduler.schedule('mail', () => undefined).everyMinute();
    const atFive = await scheduler.runOnce({ at: '2026-06-03T05:00:00Z', dryRun: true });
    assert.deepEqual(
      atFive.entries.map(({ name, result }) => [name, result]),
      [
        ['nightly', 'run'],
        ['mail', 'run'],
      ],
    );
    const atTwo = await scheduler.runOnce({ at: '2026-06-03T02:00:00Z', dryRun: true });
    assert.equal(entryOf(atTwo, 'nightly').result, 'skipped');
  });

  it('D11 without a moment tells what a pass would do now, and a pass then does just that', async () => {
    const { scheduler, clock } = byHand(database, { environment: 'staging' });
    scheduler.schedule('inline', () => undefined).everyMinute();
    scheduler
      .schedule('queued', () => undefined)
      .everyFiveMinutes()
      .queue('reports')
      .dependsOn('inline');
    scheduler
      .schedule('all', () => undefined)
      .everyTwoMinutes()
      .onMisfire('all')
      .overlap('allow');
    scheduler
      .schedule('missed', () => undefined)
      .everyMinute()
      .onMisfire('skip');
    scheduler.schedule('later', () => undefined).yearly();
    scheduler
      .schedule('off', () => undefined)
      .everyMinute()
      .disable();
    scheduler
      .schedule('elsewhere', () => undefined)
      .everyMinute()
      .environments('production');
    scheduler.schedule('paused', () => undefined).everyMinute();
    await scheduler.runOnce();
    await scheduler.pauseSchedule('paused');
    for (const minutes of [0, 1, 7, 30, 0.5]) {
      clock.advance(minutes * MINUTE);
      const told = await scheduler.runOnce({ dryRun: true });
      const done = await scheduler.runOnce({ batch: 0 });
      assert.deepEqual(sorted(told), sorted(done), `${minutes} minutes later`);
    }
  });

  for (const [title, fields] of [
    ['was disabled where its rule could not be read', { isActive: false, disabledReason: 'no such zone' }],
    ['cannot be read', { owed: 'nothing' }],
  ] as const) {
    it(`D11 a schedule that ${title}: a process that is new to it tells what its pass then does`, async () => {
      const { scheduler: one, clock } = byHand(database);
      one.schedule('report', () => undefined).everyMinute();
      await one.runOnce();
      clock.advance(MINUTE);
      await database.collections.schedules.updateOne(
        { _id: 'report' },
        { $set: fields as object },
        { bypassDocumentValidation: true },
      );
      for (const isNew of [false, true]) {
        const scheduler = isNew ? database.scheduler({ clock }) : one;
        if (isNew) scheduler.schedule('report', () => undefined).everyMinute();
        const told = await scheduler.runOnce({ dryRun: true });
        const done = await scheduler.runOnce({ batch: 0 });
        assert.deepEqual(told.entries, done.entries, isNew ? 'new to it' : 'has registered it');
      }
    });
  }

  it('D11 an occurrence that has its job already is told so, for a moment that is given too', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler.schedule('report', () => undefined).everyMinute();
    await scheduler.runOnce();
    clock.advance(MINUTE);
    await scheduler.runOnce();
    const at = clock.now();
    const told = await scheduler.runOnce({ at, dryRun: true });
    const done = await scheduler.runOnce({ at, batch: 0 });
    assert.deepEqual(entryOf(told, 'report').reason, 'its job exists already');
    assert.deepEqual(told.entries, done.entries);
  });

  function sorted({ entries }: PassReport): PassEntry[] {
    return entries.toSorted((a, b) => (`${a.name} ${a.jobId}` < `${b.name} ${b.jobId}` ? -1 : 1));
  }

  it('D11 tells that a single instance is still running', async () => {
    const { scheduler, clock } = byHand(database);
    const other = database.scheduler({ clock, lockTimeout: '1d' });
    const started = newSignal();
    const release = newSignal();
    for (const one of [scheduler, other])
      one
        .schedule('import', () => {
          started.fire();
          return release.promise;
        })
        .everyMinute();
    await other.runOnce();
    clock.advance(MINUTE);
    const running = inBackground(other.runOnce());
    await started.promise;
    clock.advance(MINUTE);
    const report = await scheduler.runOnce({ dryRun: true });
    release.fire();
    await running;
    const reasons = report.entries.map(({ reason }) => reason ?? '');
    assert.ok(
      reasons.some((reason) => reason.includes("single-instance job 'import' is already running")),
      JSON.stringify(report.entries),
    );
    assert.ok(
      report.entries.every(({ result }) => result === 'skipped'),
      JSON.stringify(report.entries),
    );
  });
});

describe('a dry run writes nothing', () => {
  const own = new TestDatabase();
  beforeEach(() => own.open());
  afterEach(() => own.close());

  function define(scheduler: Scheduler): void {
    scheduler.schedule('inline', () => assert.fail('ran')).everyMinute();
    scheduler
      .schedule('queued', () => assert.fail('ran'))
      .everyMinute()
      .queue('reports');
    scheduler
      .schedule('changed', () => assert.fail('ran'))
      .everyMinute()
      .overlap('queue');
    scheduler.registerHandler('work', () => assert.fail('ran'));
  }

  it('D11 into an empty database: no collection appears', async () => {
    await own.connection.dropDatabase();
    const { scheduler } = byHand(own);
    define(scheduler);
    const report = await scheduler.runOnce({ at: '2026-06-03T02:00:00Z', dryRun: true });
    await scheduler.runOnce({ dryRun: true });
    await scheduler.stop();
    assert.equal(entryOf(report, 'inline').result, 'run');
    assert.deepEqual(await own.connection.db?.listCollections().toArray(), []);
  });

  it('D11 into a database in use: every document stays as it is, and no write reaches the server', async () => {
    const { scheduler: earlier, clock } = byHand(own);
    earlier.schedule('inline', () => undefined).everyMinute();
    earlier.schedule('changed', () => undefined).hourly();
    earlier.registerHandler('work', () => undefined);
    await secondPass(earlier, clock);
    // Due, owed, expired and overdue: a real pass would have something to do about each.
    await earlier.dispatch('work');
    await own.collections.jobs.updateMany(
      { taskType: 'work' },
      { $set: { status: 'RUNNING', lockedBy: 'dead', lockToken: 'old', lockedUntil: START } },
    );
    await earlier.dispatch('work');
    await earlier.addSchedule({ taskType: 'work', cron: '* * * * *' });
    await earlier.stop();
    clock.advance(5 * MINUTE);
    const { db } = own.connection;
    const hashes = async (): Promise<unknown> => (await db!.command({ dbHash: 1 }))['collections'];
    const before = await hashes();
    await db!.command({ profile: 2 });

    const scheduler = own.scheduler({ clock });
    define(scheduler);
    const now = await scheduler.runOnce({ dryRun: true });
    const then = await scheduler.runOnce({ at: after(5 * MINUTE), dryRun: true });
    await scheduler.stop();

    await db!.command({ profile: 0 });
    assert.ok(now.entries.some(({ result }) => result === 'run'));
    assert.ok(then.entries.some(({ result }) => result === 'enqueued'));
    const seen = await db!
      .collection<{ op: string; ns: string; command: object; appName?: string }>('system.profile')
      .find()
      .toArray();
    const reads = seen.filter(({ op }) => op === 'query' || op === 'getmore');
    assert.ok(reads.length > 0, 'the profiler sees what the dry run reads');
    const others = seen.filter(
      (one) => !reads.includes(one) && !('dbHash' in one.command || 'profile' in one.command),
    );
    assert.deepEqual(
      others.map(({ op, ns, command }) => [op, ns, Object.keys(command)[0]]),
      [],
    );
    assert.deepEqual(await hashes(), before);
  });
});

describe('a pass for a given moment', () => {
  const database = useSharedDatabase();

  it('D11 runs what was due in that minute, once, and leaves the schedule where it is', async () => {
    const { scheduler, clock } = byHand(database);
    const ran: string[] = [];
    scheduler.schedule('nightly', (_, job) => void ran.push(job.id)).dailyAt('02:00');
    scheduler
      .schedule('queued', () => undefined)
      .dailyAt('02:00')
      .queue('reports')
      .overlap('allow');
    await scheduler.runOnce();
    clock.advance(3 * 3_600_000);
    const at = '2025-12-31T02:00:30Z';
    const report = await scheduler.runOnce({ at });
    assert.deepEqual(
      report.entries.map(({ name, result, jobId }) => [name, result, jobId]),
      [
        ['nightly', 'run', 'nightly@2025-12-31T02:00:00.000Z'],
        ['queued', 'enqueued', 'queued@2025-12-31T02:00:00.000Z'],
      ],
    );
    const again = await scheduler.runOnce({ at });
    assert.deepEqual(lines(again), [
      ['nightly', 'skipped', 'its job exists already'],
      ['queued', 'skipped', 'its job exists already'],
    ]);
    assert.deepEqual(ran, ['nightly@2025-12-31T02:00:00.000Z']);
    // Today's is still to come, and comes.
    const today = await scheduler.runOnce();
    assert.deepEqual(
      today.entries.filter(({ result }) => result !== 'skipped').map(({ jobId }) => jobId),
      ['nightly@2026-01-01T02:00:00.000Z', 'queued@2026-01-01T02:00:00.000Z'],
    );
  });

  it('D11 records no skip for an occurrence that has a job', async () => {
    const { scheduler, clock } = byHand(database);
    scheduler
      .schedule('queued', () => undefined)
      .dailyAt('02:00')
      .queue('reports');
    await scheduler.runOnce();
    clock.advance(3 * 3_600_000);
    const at = '2025-12-31T02:00:30Z';
    await scheduler.runOnce({ at });
    await scheduler.runOnce({ at });
    assert.deepEqual(await database.collections.jobs.distinct('_id'), ['queued@2025-12-31T02:00:00.000Z']);
    assert.deepEqual(await scheduler.getSkips('queued'), []);
  });
});

import assert from 'node:assert/strict';
import { resolveOptions } from '../../../src/config/options.js';
import type { JobDocument } from '../../../src/domain/job.js';
import type { ScheduleDocument, SkipDocument } from '../../../src/domain/schedule.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import type { ScheduleBuilder } from '../../../src/schedules/builder.js';
import { Decisions, type DecisionsParts } from '../../../src/schedules/decisions.js';
import { Definitions } from '../../../src/schedules/definitions.js';
import { Fulfilment, type FulfilmentParts } from '../../../src/schedules/fulfilment.js';
import { newSchedule } from '../../../src/schedules/new-schedule.js';
import { Pass, type PassParts } from '../../../src/schedules/pass.js';
import type { PassEntry } from '../../../src/schedules/pass-entry.js';
import { previewPass } from '../../../src/schedules/pass-preview.js';
import { HandlerRegistry } from '../../../src/worker/handler-registry.js';
import { ManualClock } from '../../support/manual-clock.js';

const MINUTE = 60_000;
const FIRST = 'report@2026-01-01T00:01:00.000Z';

/** Keeps everything in memory; `losses` lets others be first that many times. */
class Memory {
  readonly schedules = new Map<string, ScheduleDocument>();
  readonly jobs = new Map<string, JobDocument>();
  readonly skips: SkipDocument[] = [];
  losses = 0;
  rounds = 0;
  writes = 0;

  readonly store: PassParts['store'] & DecisionsParts['store'] & FulfilmentParts['store'] = {
    findSchedule: async (id) => this.schedules.get(id) ?? null,
    findJob: async (id) => this.jobs.get(id) ?? null,
    decideSchedules: async (token, decisions) => {
      this.rounds++;
      this.writes++;
      const won = decisions.filter(() => this.losses-- <= 0);
      for (const {
        schedule,
        plan: { cancel: _, ...fields },
      } of won)
        this.#update(schedule._id, { ...fields, decision: token });
      return { won: new Set(won.map(({ schedule }) => schedule._id)), refused: new Map() };
    },
    dropOwed: async (done) => {
      this.writes++;
      for (const { scheduleId, kind, ids } of done) {
        const before = this.schedules.get(scheduleId)?.owed ?? [];
        const owed = before.filter((entry) => entry.kind !== kind || !ids.includes(entry.id));
        this.#update(scheduleId, { owed });
      }
    },
    enqueueMany: async (jobs) => {
      this.writes++;
      return jobs.map((job) => {
        const duplicate = this.jobs.has(job._id);
        if (!duplicate) this.jobs.set(job._id, job);
        return { id: job._id, duplicate };
      });
    },
    recordSkips: async (skips) => {
      this.writes++;
      this.skips.push(...skips);
      return new Map();
    },
    findRuns: async (ids) =>
      new Map(ids.flatMap((id) => (this.jobs.has(id) ? [[id, this.jobs.get(id)!] as const] : []))),
    changeSchedule: async ({ _id }, fields) => {
      this.writes++;
      this.#update(_id, fields);
      return true;
    },
  };

  #update(id: string, fields: Partial<ScheduleDocument>): void {
    const schedule = this.schedules.get(id);
    if (schedule !== undefined) this.schedules.set(id, { ...schedule, ...fields });
  }
}

describe('a pass over the definitions', () => {
  /** A definition every minute, stored a minute ago. `end` is what becomes of a job that runs in place. */
  function aPass(
    say: (report: ScheduleBuilder<unknown>) => unknown = () => undefined,
    end: (job: JobDocument) => Partial<JobDocument> | undefined = () => ({ status: 'COMPLETED' }),
    stopAfterFirst = false,
  ): {
    memory: Memory;
    pass: Pass;
    preview: (at: Date | undefined) => Promise<PassEntry[]>;
    ran: string[];
  } {
    const memory = new Memory();
    const clock = new ManualClock();
    const definitions = new Definitions({
      registry: new HandlerRegistry(),
      options: resolveOptions({ uri: 'mongodb://localhost/unused', environment: 'test' }),
      draft: () => assert.fail('nothing is dispatched'),
      dispatch: () => assert.fail('nothing is dispatched'),
    });
    say(definitions.schedule('report', () => undefined).everyMinute());
    for (const { name, schedule, hash } of definitions.all())
      memory.schedules.set(name, newSchedule(name, 'code', schedule, hash, clock.now()));
    clock.advance(MINUTE);
    const ran: string[] = [];
    const isStopped = (): boolean => stopAfterFirst && ran.length > 0;
    const { store } = memory;
    const events = new EventBus();
    const pass = new Pass({
      clock,
      definitions,
      environment: 'test',
      inlineQueue: 'default',
      isStopped,
      store,
      decisions: new Decisions({ store, events }),
      fulfilment: new Fulfilment({
        ...{ store, clock, events, skipRetention: MINUTE },
        cancel: async () => undefined,
        nudge: () => undefined,
      }),
      runInPlace: async (job) => {
        if (isStopped()) throw new Error('the worker was stopped meanwhile');
        if (memory.jobs.has(job._id)) return false;
        ran.push(job._id);
        const ended = end(job);
        if (ended !== undefined) memory.jobs.set(job._id, { ...job, ...ended });
        return true;
      },
    });
    const preview = (at: Date | undefined): Promise<PassEntry[]> =>
      previewPass({ ...{ store, clock, definitions }, environment: 'test', isRegistered: () => true }, at);
    return { memory, pass, preview, ran };
  }

  function told(entries: readonly PassEntry[]): unknown[] {
    return entries.map(({ result, reason, jobId }) => [result, reason, jobId]);
  }

  it('J15 looks again when others decided at the same moment, and runs what is still due', async () => {
    const { memory, pass, ran } = aPass();
    memory.losses = 4;
    assert.deepEqual(told(await pass.run(undefined)), [['run', null, FIRST]]);
    assert.equal(memory.rounds, 5);
    assert.deepEqual(ran, [FIRST]);
  });

  it('J15 gives up when others are always first, says so, and has run nothing', async () => {
    const { memory, pass, ran } = aPass();
    memory.losses = 100;
    assert.deepEqual(told(await pass.run(undefined)), [
      ['skipped', 'decided by another process at the same moment', null],
    ]);
    assert.ok(memory.rounds <= 10, String(memory.rounds));
    assert.deepEqual(ran, []);
  });

  it('J15 does not run what another process has inserted meanwhile', async () => {
    const { memory, pass, ran } = aPass();
    memory.jobs.set(FIRST, { _id: FIRST, status: 'COMPLETED' } as JobDocument);
    assert.deepEqual(told(await pass.run(undefined)), [['skipped', 'its job exists already', FIRST]]);
    assert.deepEqual(ran, []);
    assert.deepEqual(memory.schedules.get('report')?.owed, []);
  });

  it('Y8 a schedule that somebody removes meanwhile is reported', async () => {
    const { memory, pass } = aPass();
    memory.schedules.clear();
    assert.deepEqual(told(await pass.run(undefined)), [['skipped', 'not registered', null]]);
  });

  it('D6 says how a run in place ended: completed, failed, cancelled, refused by a filter, or not at all', async () => {
    const ends: [Partial<JobDocument> | undefined, unknown[]][] = [
      [{ status: 'COMPLETED' }, ['run', null]],
      [
        { status: 'FAILED', error: { name: 'Error', message: 'broken', code: null, stack: null } },
        ['failed', 'broken'],
      ],
      [{ status: 'FAILED', error: null }, ['failed', 'failed']],
      [{ status: 'CANCELLED' }, ['skipped', 'cancelled']],
      [{ status: 'CANCELLED', skipReason: 'closed' }, ['skipped', 'filter: closed']],
      [{ status: 'SCHEDULED' }, ['run', 'not finished: SCHEDULED']],
      [undefined, ['run', 'not finished: gone']],
    ];
    for (const [end, expected] of ends) {
      const { pass } = aPass(undefined, () => end);
      assert.deepEqual(told(await pass.run(undefined)), [[...expected, FIRST]]);
    }
  });

  it('D6 takes what it has run off the list of what is owed', async () => {
    const { memory, pass } = aPass();
    await pass.run(undefined);
    assert.deepEqual(memory.schedules.get('report')?.owed, []);
    assert.equal(memory.schedules.get('report')?.nextRunAt?.toISOString(), '2026-01-01T00:02:00.000Z');
  });

  it('D6 enqueues what has a queue, and runs nothing of it', async () => {
    const { memory, pass, ran } = aPass((report) => report.queue('reports'));
    assert.deepEqual(told(await pass.run(undefined)), [['enqueued', null, FIRST]]);
    assert.deepEqual(ran, []);
    assert.equal(memory.jobs.get(FIRST)?.queue, 'reports');
  });

  it('D7 D8 decides nothing about what is disabled or meant for another environment', async () => {
    for (const say of [
      (report: ScheduleBuilder<unknown>) => report.disable(),
      (report: ScheduleBuilder<unknown>) => report.environments('production'),
    ]) {
      const { memory, pass, ran } = aPass(say);
      const [entry] = await pass.run(undefined);
      assert.equal(entry?.result, 'skipped');
      assert.deepEqual([ran, memory.writes], [[], 0]);
    }
  });

  it('J17 begins nothing more once it is told to stop', async () => {
    const { memory, pass, ran } = aPass((report) => report.onMisfire('all'), undefined, true);
    const two = memory.schedules.get('report')!;
    memory.schedules.set('report', { ...two, nextRunAt: new Date(two.nextRunAt!.getTime() - 5 * MINUTE) });
    const entries = await pass.run(undefined);
    assert.equal(ran.length, 1);
    assert.ok(
      entries.every(({ result }) => result !== 'failed'),
      'to be stopped is no failure',
    );
  });

  it('D11 a preview writes nothing, whatever is due', async () => {
    for (const say of [
      (report: ScheduleBuilder<unknown>) => report,
      (report: ScheduleBuilder<unknown>) => report.queue('reports'),
      (report: ScheduleBuilder<unknown>) => report.onMisfire('skip').overlap('replace'),
    ]) {
      const { memory, preview, ran } = aPass(say);
      const now = await preview(undefined);
      const then = await preview(new Date('2026-01-01T00:01:00Z'));
      assert.deepEqual(told(now), told(then));
      assert.equal(now[0]?.jobId, FIRST);
      assert.deepEqual([ran, memory.writes], [[], 0]);
    }
  });
});

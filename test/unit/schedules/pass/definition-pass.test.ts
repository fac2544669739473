import assert from 'node:assert/strict';
import { resolveOptions } from '../../../../src/config/options.js';
import type { JobDocument } from '../../../../src/domain/job/job.js';
import type { ScheduleDocument, SkipDocument } from '../../../../src/domain/schedule/schedule.js';
import { EventBus } from '../../../../src/runtime/event-bus.js';
import { defineSchedule, type ScheduleBuilder } from '../../../../src/schedules/definition/builder.js';
import { DefinitionRegistry } from '../../../../src/schedules/definition/definition-registry.js';
import { PlanExecutor, type PlanExecutorDeps } from '../../../../src/schedules/enqueue/plan-executor.js';
import {
  SchedulePlanner,
  type SchedulePlannerDeps,
} from '../../../../src/schedules/enqueue/schedule-planner.js';
import { DefinitionPass, type DefinitionPassDeps } from '../../../../src/schedules/pass/definition-pass.js';
import type { PassEntry } from '../../../../src/schedules/pass/pass-entry.js';
import { previewPass } from '../../../../src/schedules/pass/pass-preview.js';
import { newSchedule } from '../../../../src/schedules/stored/schedule-document.js';
import { aRegistry } from '../../../support/factories/handler-registry.js';
import { ManualClock } from '../../../support/manual-clock.js';

const MINUTE = 60_000;
const FIRST = 'report@2026-01-01T00:01:00.000Z';

/** A store in memory. The next `conflicts` plans are not stored, as if another process had stored one first. */
class MemoryStore {
  readonly schedules = new Map<string, ScheduleDocument>();
  readonly jobs = new Map<string, JobDocument>();
  readonly skips: SkipDocument[] = [];
  conflicts = 0;
  rounds = 0;
  writes = 0;

  readonly store: DefinitionPassDeps['store'] & SchedulePlannerDeps['store'] & PlanExecutorDeps['store'] = {
    findSchedule: async (id) => this.schedules.get(id) ?? null,
    findJob: async (id) => this.jobs.get(id) ?? null,
    storeDecisions: async (token, decisions) => {
      this.rounds++;
      this.writes++;
      const stored = decisions.filter(() => this.conflicts-- <= 0);
      for (const {
        schedule,
        plan: { cancel: _, ...fields },
      } of stored)
        this.#update(schedule._id, { ...fields, decision: token });
      return { stored: new Set(stored.map(({ schedule }) => schedule._id)), rejected: new Map() };
    },
    removePending: async (done) => {
      this.writes++;
      for (const { scheduleId, kind, ids } of done) {
        const before = this.schedules.get(scheduleId)?.pending ?? [];
        const pending = before.filter((entry) => entry.kind !== kind || !ids.includes(entry.id));
        this.#update(scheduleId, { pending });
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
    findRunStates: async (ids) =>
      new Map(ids.flatMap((id) => (this.jobs.has(id) ? [[id, this.jobs.get(id)!] as const] : []))),
    disableSchedule: async ({ _id }, disabledReason) => {
      this.writes++;
      this.#update(_id, { isActive: false, disabledReason });
      return true;
    },
  };

  #update(id: string, fields: Partial<ScheduleDocument>): void {
    const schedule = this.schedules.get(id);
    if (schedule !== undefined) this.schedules.set(id, { ...schedule, ...fields });
  }
}

describe('DefinitionPass', () => {
  /** A pass with one definition that runs every minute and was stored a minute ago. `end` decides how an inline run ends. */
  function aPass(
    configure: (report: ScheduleBuilder<unknown>) => unknown = () => undefined,
    end: (job: JobDocument) => Partial<JobDocument> | undefined = () => ({ status: 'COMPLETED' }),
    stopAfterFirst = false,
  ): {
    memory: MemoryStore;
    pass: DefinitionPass;
    preview: (at: Date | undefined) => Promise<PassEntry[]>;
    ran: string[];
  } {
    const memory = new MemoryStore();
    const clock = new ManualClock();
    const options = resolveOptions({ uri: 'mongodb://localhost/unused', environment: 'test' });
    const definitions = new DefinitionRegistry(aRegistry(), options);
    const dispatch = (): never => assert.fail('must not dispatch');
    configure(defineSchedule(definitions, dispatch, 'report', () => undefined).everyMinute());
    for (const { name, schedule, hash } of definitions.all())
      memory.schedules.set(name, newSchedule(name, 'code', schedule, hash, clock.now()));
    clock.advance(MINUTE);
    const ran: string[] = [];
    const isStopped = (): boolean => stopAfterFirst && ran.length > 0;
    const { store } = memory;
    const events = new EventBus('worker');
    const deps = { store, clock, events, definitions, options };
    const executor = new PlanExecutor({
      ...deps,
      jobs: { cancel: () => assert.fail('must not cancel') },
      engine: { wake: () => undefined },
    });
    const engine: DefinitionPassDeps['engine'] = {
      get isStopped() {
        return isStopped();
      },
      runInline: async (job) => {
        if (isStopped()) throw new Error('the worker was stopped');
        if (memory.jobs.has(job._id)) return false;
        ran.push(job._id);
        const ended = end(job);
        if (ended !== undefined) memory.jobs.set(job._id, { ...job, ...ended });
        return true;
      },
    };
    const pass = new DefinitionPass({ ...deps, planner: new SchedulePlanner(deps), executor, engine });
    const preview = (at: Date | undefined): Promise<PassEntry[]> =>
      previewPass(deps, { isRegistered: () => true }, at);
    return { memory, pass, preview, ran };
  }

  function summarize(entries: readonly PassEntry[]): unknown[] {
    return entries.map(({ result, reason, jobId }) => [result, reason, jobId]);
  }

  it('plans again after a conflict and runs what is still due [J15]', async () => {
    const { memory, pass, ran } = aPass();
    memory.conflicts = 4;
    assert.deepEqual(summarize(await pass.run(undefined)), [['run', null, FIRST]]);
    assert.equal(memory.rounds, 5);
    assert.deepEqual(ran, [FIRST]);
  });

  it('gives up after repeated conflicts, reports it and runs nothing [J15]', async () => {
    const { memory, pass, ran } = aPass();
    memory.conflicts = 100;
    assert.deepEqual(summarize(await pass.run(undefined)), [
      ['skipped', 'planned by another process at the same time', null],
    ]);
    assert.ok(memory.rounds <= 10, String(memory.rounds));
    assert.deepEqual(ran, []);
  });

  it('does not run a job that another process has inserted in the meantime [J15]', async () => {
    const { memory, pass, ran } = aPass();
    memory.jobs.set(FIRST, { _id: FIRST, status: 'COMPLETED' } as JobDocument);
    assert.deepEqual(summarize(await pass.run(undefined)), [['skipped', 'its job already exists', FIRST]]);
    assert.deepEqual(ran, []);
    assert.deepEqual(memory.schedules.get('report')?.pending, []);
  });

  it('reports a schedule that is removed during the pass [Y8]', async () => {
    const { memory, pass } = aPass();
    memory.schedules.clear();
    assert.deepEqual(summarize(await pass.run(undefined)), [['skipped', 'not registered', null]]);
  });

  it('reports how an inline run ended: completed, failed, cancelled, skipped by a filter, or not finished [D6]', async () => {
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
      assert.deepEqual(summarize(await pass.run(undefined)), [[...expected, FIRST]]);
    }
  });

  it('removes an inline run from the pending entries [D6]', async () => {
    const { memory, pass } = aPass();
    await pass.run(undefined);
    assert.deepEqual(memory.schedules.get('report')?.pending, []);
    assert.equal(memory.schedules.get('report')?.nextRunAt?.toISOString(), '2026-01-01T00:02:00.000Z');
  });

  it('enqueues definitions with a queue and does not run them [D6]', async () => {
    const { memory, pass, ran } = aPass((report) => report.queue('reports'));
    assert.deepEqual(summarize(await pass.run(undefined)), [['enqueued', null, FIRST]]);
    assert.deepEqual(ran, []);
    assert.equal(memory.jobs.get(FIRST)?.queue, 'reports');
  });

  it('plans no definition that is disabled or for another environment [D7] [D8]', async () => {
    for (const configure of [
      (report: ScheduleBuilder<unknown>) => report.disable(),
      (report: ScheduleBuilder<unknown>) => report.environments('production'),
    ]) {
      const { memory, pass, ran } = aPass(configure);
      const [entry] = await pass.run(undefined);
      assert.equal(entry?.result, 'skipped');
      assert.deepEqual([ran, memory.writes], [[], 0]);
    }
  });

  it('starts nothing after a stop [J17]', async () => {
    const { memory, pass, ran } = aPass((report) => report.onMisfire('all'), undefined, true);
    const report = memory.schedules.get('report')!;
    memory.schedules.set('report', {
      ...report,
      nextRunAt: new Date(report.nextRunAt!.getTime() - 5 * MINUTE),
    });
    const entries = await pass.run(undefined);
    assert.equal(ran.length, 1);
    assert.ok(
      entries.every(({ result }) => result !== 'failed'),
      'a stop is not a failure',
    );
  });

  it('writes nothing in a preview [D11]', async () => {
    for (const configure of [
      (report: ScheduleBuilder<unknown>) => report,
      (report: ScheduleBuilder<unknown>) => report.queue('reports'),
      (report: ScheduleBuilder<unknown>) => report.onMisfire('skip').overlap('replace'),
    ]) {
      const { memory, preview, ran } = aPass(configure);
      const now = await preview(undefined);
      const then = await preview(new Date('2026-01-01T00:01:00Z'));
      assert.deepEqual(summarize(now), summarize(then));
      assert.equal(now[0]?.jobId, FIRST);
      assert.deepEqual([ran, memory.writes], [[], 0]);
    }
  });
});

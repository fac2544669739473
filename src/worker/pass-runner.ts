import { randomUUID } from 'node:crypto';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import { isRescheduled } from '../domain/job/outcome.js';
import type { HandlerRegistry } from '../handlers/handler-registry.js';
import { afterClaim } from '../store/jobs/claim.js';
import type { Store } from '../store/store.js';
import type { Claimer } from './claimer.js';
import type { InFlightJob } from './in-flight-jobs.js';
import type { JobRunner } from './job-runner.js';
import type { SingleInstances } from './single-instances.js';
import type { UncertainClaims } from './uncertain-claims.js';

export interface PassRunnerDeps {
  store: Pick<Store, 'enqueue'>;
  clock: Clock;
  workerId: string;
  registry: HandlerRegistry;
  claimer: Claimer;
  runner: JobRunner;
  uncertainClaims: UncertainClaims;
  singleInstances: Pick<SingleInstances, 'runOnce'>;
}

export interface BatchResult {
  executed: number;
  /** Attempts that failed, whether they are retried or not. */
  failed: number;
}

/** Runs due jobs once, without a poll loop: a batch of them, or one new job inline. */
export class PassRunner {
  readonly #deps: PassRunnerDeps;

  constructor(deps: PassRunnerDeps) {
    this.#deps = deps;
  }

  /** Claims and executes due jobs until none is due or `batch` were run. Resolves after they have settled. */
  async runBatch(batch: number): Promise<BatchResult> {
    const { runner, claimer, singleInstances } = this.#deps;
    const runs: InFlightJob[] = [];
    // A pass runs each job once: a retry that is due immediately waits for the next pass.
    const excluded = (): string[] =>
      runs
        .filter(({ isSettled, outcome }) => !isSettled || (outcome !== undefined && isRescheduled(outcome)))
        .map(({ job }) => job._id);
    for (let hasWaited = false; runs.length < batch && !claimer.isClosed;) {
      await runner.whenSlotFree();
      if (runner.allStuck || claimer.isClosed) break;
      await singleInstances.runOnce();
      const { wanted, claimed, accepted, leftJobsOut } = await claimer.claim(
        () => ({ slots: Math.min(runner.freeSlots, batch - runs.length), prefetch: 0 }),
        excluded,
      );
      runs.push(...accepted);
      const pending = runs.filter(({ isSettled }) => !isSettled);
      if (claimed.length > 0) hasWaited = false;
      else if (hasWaited || (wanted > 0 && !leftJobsOut)) break;
      // The jobs that were left out can be claimed when one of these has settled.
      else if (pending.length > 0) await runner.whenOneSettled(pending);
      else hasWaited = true;
    }
    await runner.whenSettled(runs);
    const failed = runs.filter(({ outcome }) => outcome?.kind === 'failed' || outcome?.kind === 'retry');
    const expired = runs.filter(({ outcome }) => outcome?.kind === 'expired');
    return { executed: runs.length - expired.length, failed: failed.length };
  }

  /**
   * Runs a new job in this process: it is inserted RUNNING and locked, so that no other process claims it.
   * Resolves when its outcome is stored; to false if the job already existed.
   */
  async runInline(job: JobDocument): Promise<boolean> {
    const { store, clock, workerId, registry, claimer, runner, uncertainClaims } = this.#deps;
    await runner.whenSlotFree();
    this.#assertOpen();
    if (runner.allStuck) {
      const message = 'every slot of this process is occupied by a handler that ignores its abort signal';
      throw new ChronosError('WRONG_STATE', message);
    }
    const sentAt = clock.monotonic();
    const now = clock.now();
    const { lease } = registry.settingsFor(job.taskType);
    const grant = { token: randomUUID(), workerId, lockedUntil: new Date(now.getTime() + lease) };
    const claimed = { job: afterClaim('claim', job, grant, now), token: grant.token, lease, sentAt };
    try {
      if ((await store.enqueue(claimed.job)).duplicate) return false;
    } catch (error) {
      uncertainClaims.add({ token: grant.token, ids: [job._id], lease });
      throw error;
    }
    if (claimer.isClosed) await uncertainClaims.release([claimed]);
    this.#assertOpen();
    await runner.whenSettled(runner.accept([claimed]));
    return true;
  }

  #assertOpen(): void {
    if (this.#deps.claimer.isClosed)
      throw new ChronosError('WRONG_STATE', 'the worker was stopped during this call');
  }
}

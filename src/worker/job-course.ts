import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import { goesOn } from '../domain/outcome.js';
import type { EventBus } from '../runtime/event-bus.js';
import { AttemptSpan } from '../runtime/tracing.js';
import { announce, announceStart, attemptOf } from './announce.js';
import type { InFlightJob, InFlightJobs } from './in-flight-jobs.js';
import type { Attempt, JobExecutor } from './job-executor.js';
import type { LockManager, LossKind } from './lock-manager.js';
import type { Settler } from './settler.js';
import type { StartMarks } from './start-marks.js';

export interface CourseParts {
  executor: JobExecutor;
  locks: LockManager;
  marks: StartMarks;
  settler: Settler;
  clock: Clock;
  events: EventBus;
  /** Whether outcomes of this task type are written alone, before the slot is free again. */
  settlesAlone: (taskType: string) => boolean;
}

/** Told where a job has come to. */
export interface CourseWatch {
  /** Its outcome is written, or never will be. */
  onWritten: () => void;
  /** Its outcome is written and its handler has ended. Not before: as long as it is in flight, claims leave it out. */
  onThrough: (entry: InFlightJob) => void;
  /** Its handler has really ended, after this many milliseconds. */
  onEnded: (duration: number) => void;
}

/** The course of a job in its slot: its handler starts, comes to an outcome that is written, or loses its lock. */
export class JobCourse {
  readonly #parts: CourseParts;
  readonly #inFlight: InFlightJobs;
  readonly #watch: CourseWatch;

  constructor(parts: CourseParts, inFlight: InFlightJobs, watch: CourseWatch) {
    this.#parts = parts;
    this.#inFlight = inFlight;
    this.#watch = watch;
  }

  /** From the start of the handler until it has really ended. */
  async run(entry: InFlightJob): Promise<void> {
    const { executor, marks, events, clock, settlesAlone } = this.#parts;
    const { job, token } = entry;
    this.#inFlight.start(entry, clock.monotonic());
    const now = clock.now();
    if (job.status === 'QUEUED') marks.add({ jobId: job._id, token, startedAt: now });
    const span = AttemptSpan.begin(job);
    announceStart(events, job, now);
    const execution = executor.run(job, span);
    entry.execution = execution;
    const attempt = await execution.attempt;
    const finished = this.#finish(entry, attempt);
    if (attempt.stuck) await execution.handled;
    if (settlesAlone(job.taskType)) await finished;
    this.#inFlight.end(entry);
    if (entry.settled) this.#watch.onThrough(entry);
    this.#watch.onEnded(clock.monotonic() - entry.since);
  }

  /** The lock is lost while the handler runs, or while its outcome is being written. */
  loseLock(entry: InFlightJob, kind: LossKind): void {
    if (kind === 'gone') this.#announceLoss(entry);
    else entry.lost ??= kind;
    this.#inFlight.addZombie(entry);
    entry.execution?.abort(
      'lockLost',
      new ChronosError('LOCK_LOST', `the lock on job '${entry.job._id}' was lost`),
    );
  }

  /** Decide, persist, then announce. */
  async #finish(entry: InFlightJob, attempt: Attempt): Promise<void> {
    const { marks, settler, locks, events, settlesAlone } = this.#parts;
    const { job, token } = entry;
    marks.drop(job._id);
    if (attempt.stuck) events.emit('worker:stuck', { ...attemptOf(job), runningFor: attempt.duration });
    // One that still runs is not given back: it would run twice at once. Its lock runs out instead.
    const keepLocked = attempt.stuck && attempt.outcome.kind === 'givenBack';
    if (entry.lost !== 'gone' && !keepLocked) {
      if (goesOn(attempt.outcome)) this.#inFlight.addZombie(entry);
      const settlement = await settler.settle(job, token, attempt, settlesAlone(job.taskType));
      if (settlement.settled) announce(events, job, settlement.outcome, attempt.duration);
      else this.#announceLoss(entry);
      entry.again = settlement.settled && goesOn(settlement.outcome);
    }
    entry.settled = true;
    entry.isStuck = attempt.stuck;
    // Its handler has not ended, and the job is nobody's or finished.
    if (entry.phase === 'running') this.#inFlight.addZombie(entry);
    if (entry.held !== undefined) locks.release(entry.held);
    this.#watch.onWritten();
    if (entry.phase === 'over') this.#watch.onThrough(entry);
  }

  #announceLoss(entry: InFlightJob): void {
    if (entry.lost === 'gone') return;
    entry.lost = 'gone';
    this.#inFlight.addZombie(entry);
    this.#parts.events.emit('job:lockLost', attemptOf(entry.job));
  }
}

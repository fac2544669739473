import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { JobDocument } from '../domain/job/job.js';
import type { AbortKind, HandlerEnding } from '../domain/job/outcome.js';
import { truncateUtf8 } from '../domain/text.js';
import type { JobContext } from '../domain/job/handler.js';
import type { EventBus } from '../runtime/event-bus.js';
import type { Deadline, SharedTimer } from '../runtime/shared-timer.js';
import { traceFields } from '../runtime/tracing.js';
import type { Store } from '../store/store.js';

const NO_TAGS: readonly string[] = [];
const MAX_LOG_LINES = 1000;
const MAX_LOG_LINE_BYTES = 4096;

/**
 * The second argument of a handler. A class, because there is one per attempt and an object literal with a getter costs
 * several kilobytes. The two functions are closures, so that handlers may destructure them.
 */
export class AttemptContext implements JobContext {
  readonly id: string;
  readonly taskType: string;
  readonly queue: string;
  readonly priority: number;
  readonly status = 'RUNNING';
  readonly nextRunAt: Date;
  readonly createdAt: Date;
  readonly schedule: string | null;
  readonly scheduledFor: Date | null;
  readonly userId: string | null;
  readonly tags: readonly string[];
  readonly attempts: number;
  readonly crashes: number;
  readonly lockedBy: string | null;
  readonly progress: JobDocument['progress'];
  readonly payload: unknown;
  readonly attempt: number;
  readonly fence: number;
  readonly log: (line: string) => void;
  readonly reportProgress: (value: number, note?: string) => Promise<boolean>;
  readonly #abort: AttemptAbort;

  constructor(job: JobDocument, lines: string[], abort: AttemptAbort, progress: ProgressReporter) {
    this.id = job._id;
    this.taskType = job.taskType;
    this.queue = job.queue;
    this.priority = job.priority;
    this.nextRunAt = job.nextRunAt;
    this.createdAt = job.createdAt;
    this.schedule = job.schedule ?? null;
    this.scheduledFor = job.scheduledFor ?? null;
    this.userId = job.userId ?? null;
    this.tags = job.tags ?? NO_TAGS;
    this.attempts = job.attempts;
    this.crashes = job.crashes;
    this.lockedBy = job.lockedBy;
    this.progress = job.progress;
    this.payload = job.payload;
    this.attempt = job.attempts + 1;
    this.fence = job.fence;
    this.log = (line) => addLine(lines, line);
    this.reportProgress = (value, note) => progress.report(job, value, note ?? null);
    this.#abort = abort;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}

function addLine(lines: string[], line: string): void {
  if (lines.length < MAX_LOG_LINES) lines.push(truncateUtf8(String(line), MAX_LOG_LINE_BYTES));
  else if (lines.length === MAX_LOG_LINES) lines.push(`… (more than ${MAX_LOG_LINES} lines)`);
}

export interface AbortReason {
  readonly kind: AbortKind;
  readonly error: Error;
}

/** The signal of one attempt, its deadlines, and why it was aborted. */
export class AttemptAbort {
  readonly #timer: SharedTimer;
  readonly #graceMs: number;
  readonly #deadlines: Deadline[] = [];
  #reason: AbortReason | undefined;
  #controller: AbortController | undefined;
  #isClosed = false;
  #onStuck: (ending: HandlerEnding) => void = () => undefined;

  /** `graceMs`: a handler that has not ended this long after its signal was aborted is stuck. */
  constructor(timer: SharedTimer, graceMs: number) {
    this.#timer = timer;
    this.#graceMs = graceMs;
  }

  get reason(): AbortReason | undefined {
    return this.#reason;
  }

  /** Created on first use: most handlers never read it, and a signal costs as much as a short handler. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason.error);
    }
    return this.#controller.signal;
  }

  abortAfter(ms: number, kind: AbortKind, error: () => Error): void {
    this.#deadlines.push(this.#timer.set(ms, () => this.abort(kind, error())));
  }

  /** Only the first call has an effect. On shutdown there is no grace time: the caller decides how long to wait. */
  abort(kind: AbortKind, error: Error): void {
    if (this.#reason !== undefined || this.#isClosed) return;
    this.#reason = { kind, error };
    this.#controller?.abort(error);
    if (kind === 'shutdown') return;
    this.#deadlines.push(this.#timer.set(this.#graceMs, () => this.#onStuck({ kind: 'stuck' })));
  }

  /** Resolves when the handler ends, or to `stuck` if it has not ended within the grace time after an abort. */
  endingOf(handler: Promise<HandlerEnding>): Promise<HandlerEnding> {
    return new Promise((resolve) => {
      this.#onStuck = resolve;
      void handler.then(resolve);
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const deadline of this.#deadlines) this.#timer.clear(deadline);
  }
}

const MAX_NOTE_BYTES = 1024;

/** Stores a job's progress, fenced. A failed write never fails the job. */
export class ProgressReporter {
  readonly #store: Pick<Store, 'saveProgress'>;
  readonly #clock: Clock;
  readonly #events: EventBus;

  constructor(store: Pick<Store, 'saveProgress'>, clock: Clock, events: EventBus) {
    this.#store = store;
    this.#clock = clock;
    this.#events = events;
  }

  /** Resolves to false if the lock is lost or the write failed. */
  report(job: JobDocument, value: number, note: string | null): Promise<boolean> {
    const saved = this.#save(job, value, note);
    // If the handler does not await the promise, a rejection must not end the process.
    saved.catch(() => undefined);
    return saved;
  }

  async #save(job: JobDocument, value: number, note: string | null): Promise<boolean> {
    if (!Number.isFinite(value)) {
      const message = `reportProgress(): value must be a finite number, got ${String(value)}`;
      throw new ChronosError('INVALID_ARGUMENT', message);
    }
    const shortNote = note === null ? null : truncateUtf8(String(note), MAX_NOTE_BYTES);
    const progress = { value, note: shortNote, at: this.#clock.now() };
    try {
      const isSaved = await this.#store.saveProgress(job._id, job.lockToken ?? '', progress);
      this.#events.reportSuccess('save progress');
      if (isSaved) {
        const { _id: jobId, taskType } = job;
        this.#events.emit('job:progress', { jobId, taskType, ...traceFields(job), value, note: shortNote });
      }
      return isSaved;
    } catch (error) {
      this.#events.reportFailure('save progress', error);
      return false;
    }
  }
}

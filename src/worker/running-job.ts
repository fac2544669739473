import type { JobDocument } from '../domain/job.js';
import { cutText } from '../domain/text.js';
import type { Aborting } from './aborting.js';
import type { JobContext } from './handler.js';

/** Resolves to false when the lock is gone. */
export type SaveProgress = (job: JobDocument, value: number, note: string | null) => Promise<boolean>;

const MOST_LOG_LINES = 1000;
const LONGEST_LOG_LINE = 4096;

/**
 * What a handler gets of its job. A class, because there is one for every attempt: an object literal with a getter costs
 * the engine several kilobytes. The two functions are its own, so that handlers may take them out of it.
 */
export class RunningJob implements JobContext {
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
  readonly attempts: number;
  readonly crashes: number;
  readonly lockedBy: string | null;
  readonly progress: JobDocument['progress'];
  readonly payload: unknown;
  readonly attempt: number;
  readonly fence: number;
  readonly log: (line: string) => void;
  readonly reportProgress: (value: number, note?: string) => Promise<boolean>;
  readonly #aborting: Aborting;

  constructor(job: JobDocument, lines: string[], aborting: Aborting, saveProgress: SaveProgress) {
    this.id = job._id;
    this.taskType = job.taskType;
    this.queue = job.queue;
    this.priority = job.priority;
    this.nextRunAt = job.nextRunAt;
    this.createdAt = job.createdAt;
    this.schedule = job.schedule ?? null;
    this.scheduledFor = job.scheduledFor ?? null;
    this.userId = job.userId ?? null;
    this.attempts = job.attempts;
    this.crashes = job.crashes;
    this.lockedBy = job.lockedBy;
    this.progress = job.progress;
    this.payload = job.payload;
    this.attempt = job.attempts + 1;
    this.fence = job.fence;
    this.log = (line) => {
      addLine(lines, line);
    };
    this.reportProgress = (value, note) => saveProgress(job, value, note ?? null);
    this.#aborting = aborting;
  }

  get signal(): AbortSignal {
    return this.#aborting.signal;
  }
}

function addLine(lines: string[], line: string): void {
  if (lines.length < MOST_LOG_LINES) lines.push(cutText(String(line), LONGEST_LOG_LINE));
  else if (lines.length === MOST_LOG_LINES) lines.push(`… (more than ${MOST_LOG_LINES} lines)`);
}

import { createHash } from 'node:crypto';
import type { Rule } from '../calendar/rule.js';
import { DAY_MS } from '../duration.js';
import type { RetryPolicy } from '../job/backoff.js';
import { isRecord } from '../language.js';

export const OVERLAPS = ['allow', 'skip', 'queue', 'replace'] as const;
/** What happens to an occurrence while an earlier run of its schedule is not finished. */
export type Overlap = (typeof OVERLAPS)[number];

/** The largest `cap` of a misfire policy: all these runs are computed at once and stored in one document. */
export const MAX_MISFIRE_CAP = 1000;
export const MISFIRES = ['skip', 'once', 'all'] as const;
/** What happens to occurrences that no worker enqueued in time. */
export interface Misfire {
  policy: (typeof MISFIRES)[number];
  /** Occurrences older than this many milliseconds are skipped under every policy. */
  within: number;
  /** `all` runs at most this many late occurrences, the latest ones. */
  cap: number;
}

/** The settings of a schedule, from code or from the API. */
export interface ScheduleDefinition {
  taskType: string;
  /** Null: runs only when triggered or dispatched. */
  rule: Rule | null;
  payload: unknown;
  /** Null: a pass runs it inline; workers find it in the default queue. */
  queue: string | null;
  priority: number;
  retries: Partial<RetryPolicy> | null;
  timeout: number | null;
  maxRunningTime: number | null;
  /** Milliseconds after which a run that has not started never starts. */
  expiresIn: number | null;
  misfire: Misfire;
  overlap: Overlap;
  /** At most one run at a time, however its job was created: dispatched and triggered runs wait for the current one. */
  singleInstance: boolean;
  /** Each run is delayed by up to this many milliseconds. */
  jitter: number;
  maxRuns: number | null;
  enabled: boolean;
  /** Empty: everywhere. */
  environments: readonly string[];
  userId: string | null;
}

/** Why an occurrence did not become a job. */
export type SkipReason = 'misfire' | 'overlap' | 'backlog' | 'replaced' | 'paused' | 'changed';

/** A decision that is stored but not executed yet: a job to insert, or a skip to record. */
export type PendingEntry = PendingRun | PendingSkip;

export interface PendingRun {
  kind: 'run';
  /** The id of its job. */
  id: string;
  at: Date;
  /** The time of the decision. */
  since: Date;
  /** Requested by a backfill: it waits behind the active run and does not replace it. */
  manual?: true;
  /** An occurrence that a pass at a chosen instant requested: it does not count toward `maxRuns`. */
  uncounted?: true;
}

export interface PendingSkip {
  kind: 'skip';
  id: string;
  /** The first occurrence that is skipped. */
  at: Date;
  /** Occurrences from `at` up to this instant, exclusive, are skipped. */
  until: Date;
  /** How many were skipped; null if there were too many to count. */
  count: number | null;
  reason: SkipReason;
  /** The run that was active. */
  activeId: string | null;
  /** How long that run had been running, in milliseconds; null if it had not started. */
  runningFor: number | null;
  since: Date;
}

export interface Pause {
  at: Date;
  by: string | null;
  reason: string | null;
}

/** A schedule as it is stored: its settings and its progress. */
export interface ScheduleDocument extends ScheduleDefinition {
  _id: string;
  owner: 'code' | 'api';
  /** Hash of the definition: registration writes only if it differs. */
  hash: string;
  /** Incremented by every change, pause and resume. */
  rev: number;
  /** Enabled, not paused, and its rule is valid. */
  isActive: boolean;
  paused: Pause | null;
  disabledReason: string | null;
  /** The start of `every` intervals. */
  anchor: Date;
  /** The first occurrence that is not decided yet; null if there is none. */
  nextRunAt: Date | null;
  /** The last occurrence that became a job. */
  lastRunAt: Date | null;
  /** The job id of the current run; overlap policies depend on it. */
  active: string | null;
  pending: PendingEntry[];
  /** How many runs count toward `maxRuns`. */
  runs: number;
  /** Id of the last decision or change. Every write is a compare-and-set on it; the author reads it back after a lost reply. */
  decision: string | null;
  createdAt: Date;
  updatedAt: Date;
}

/** A stored record of occurrences that did not become jobs. */
export interface SkipDocument extends Omit<PendingSkip, 'kind' | 'id'> {
  _id: string;
  scheduleId: string;
  expiresAt: Date;
}

export const DEFAULT_MISFIRE: Misfire = { policy: 'once', within: DAY_MS, cap: 100 };

/** The job id of an occurrence. It is unique, so an occurrence cannot become two jobs. */
export function occurrenceId(scheduleId: string, at: Date): string {
  return `${scheduleId}@${at.toISOString()}`;
}

/** The schedule in a job id. Names never contain `@`, `+` or `=`; the key after a `=` may contain anything. */
export function scheduleIdOf(jobId: string): string | undefined {
  return /^([^@+=]+)[@+]/.exec(jobId)?.[1];
}

/** An evenly distributed delay up to `jitter`, derived from the job id, so that every process computes the same one. */
export function jitterOf(jobId: string, jitter: number): number {
  if (jitter === 0) return 0;
  const fraction = createHash('sha256').update(jobId).digest().readUIntBE(0, 6) / 2 ** 48;
  return Math.floor(fraction * jitter);
}

/** Equal for equal values, whatever the order of their keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);
}

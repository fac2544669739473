import { createHash } from 'node:crypto';
import type { RetryPolicy } from './backoff.js';
import type { Rule } from './rule.js';

export const OVERLAPS = ['allow', 'skip', 'queue', 'replace'] as const;
/** What happens to an occurrence while an earlier run of its schedule is not finished. */
export type Overlap = (typeof OVERLAPS)[number];

export const MISFIRES = ['skip', 'once', 'all'] as const;
/** What happens to occurrences that nobody was there for in time. */
export interface Misfire {
  policy: (typeof MISFIRES)[number];
  /** Older than this, in milliseconds, they are skipped whatever the policy. */
  within: number;
  /** `all` makes up for the last ones, at most this many. */
  cap: number;
}

/** What is said about a schedule, in code or by the API. */
export interface ScheduleDefinition {
  taskType: string;
  /** Null: it only runs when it is triggered or dispatched. */
  rule: Rule | null;
  payload: unknown;
  /** Null: a one-pass run executes it in place, a worker takes it in the default queue. */
  queue: string | null;
  priority: number;
  retries: Partial<RetryPolicy> | null;
  timeout: number | null;
  maxRunningTime: number | null;
  misfire: Misfire;
  overlap: Overlap;
  /** Each run is delayed by up to this many milliseconds. */
  jitter: number;
  maxRuns: number | null;
  enabled: boolean;
  /** Empty: everywhere. */
  environments: readonly string[];
  userId: string | null;
}

export type SkipReason = 'misfire' | 'overlap' | 'backlog' | 'replaced' | 'paused' | 'changed';

/** What was decided and is not carried out yet: a job to insert, or a skip to record. */
export type Owed = OwedRun | OwedSkip;

export interface OwedRun {
  kind: 'run';
  /** Of the job. */
  id: string;
  at: Date;
  /** When it was decided. */
  since: Date;
  /** Asked for by a person: it waits its turn, and nobody has to make way for it. */
  patient?: true;
}

export interface OwedSkip {
  kind: 'skip';
  id: string;
  /** The first occurrence that is skipped. */
  at: Date;
  /** Those from `at` up to this instant, exclusive, are skipped. */
  until: Date;
  /** How many; null when nobody counted that far. */
  count: number | null;
  reason: SkipReason;
  /** The run that was in the way, and for how many milliseconds already. */
  activeId: string | null;
  runningFor: number | null;
  since: Date;
}

export interface Pause {
  at: Date;
  by: string | null;
  reason: string | null;
}

/** A recurring rule and how far it has come, as it is stored. */
export interface ScheduleDocument extends ScheduleDefinition {
  _id: string;
  owner: 'code' | 'api';
  /** Of the definition: registration only writes where it differs. */
  hash: string;
  /** Rises with every change of the definition, and when it is paused or resumed: a decision based on an older one is void. */
  rev: number;
  /** Enabled, not paused, and its rule can be read. */
  isActive: boolean;
  paused: Pause | null;
  disabledReason: string | null;
  /** Where intervals count from. */
  anchor: Date;
  /** The first occurrence that nobody has decided on; null when there is none. */
  nextRunAt: Date | null;
  /** The last occurrence that became a job. */
  lastRunAt: Date | null;
  /** The job of the current run, which overlap policies look at. */
  active: string | null;
  owed: Owed[];
  /** Jobs it has made, as far as `maxRuns` counts them. */
  runs: number;
  /** Names the decision that wrote this document last, so that its author knows it won. */
  decision: string | null;
  createdAt: Date;
  updatedAt: Date;
}

/** Occurrences that did not become jobs, as they are kept. */
export interface SkipDocument extends Omit<OwedSkip, 'kind' | 'id'> {
  _id: string;
  scheduleId: string;
  expiresAt: Date;
}

export const DEFAULT_MISFIRE: Misfire = { policy: 'once', within: 86_400_000, cap: 100 };

/** The id of the job for an occurrence: there can only be one. */
export function occurrenceId(scheduleId: string, at: Date): string {
  return `${scheduleId}@${at.toISOString()}`;
}

/** The schedule that a job belongs to, by the job's id. Names never contain these characters. */
export function scheduleOf(jobId: string): string | undefined {
  const end = jobId.search(/[@!]/);
  return end === -1 ? undefined : jobId.slice(0, end);
}

/** The same delay for an occurrence wherever it is computed, spread evenly up to `jitter`. */
export function jitterOf(jobId: string, jitter: number): number {
  if (jitter === 0) return 0;
  const fraction = createHash('sha256').update(jobId).digest().readUIntBE(0, 6) / 2 ** 48;
  return Math.floor(fraction * jitter);
}

/** Equal for equal values, whatever the order of their keys. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 16);
}

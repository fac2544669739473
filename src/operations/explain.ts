import type { Clock } from '../domain/clock.js';
import { readInstant } from '../domain/instant.js';
import { isFinished, isSuspect, type JobStatus } from '../domain/job.js';
import { checkJobId } from '../domain/names.js';
import { scheduleOf, type SkipDocument } from '../domain/schedule.js';
import { unreadable } from '../schedules/readable.js';
import type { Store } from '../store/store.js';
import type { Facts, Gate } from './gates/gate.js';
import { GATES } from './gates/gates.js';
import { when } from './gates/phrases.js';
import { listWorkers, MOST_WORKERS } from './workers.js';

/** Why a job does not run, and when it will. */
export interface Explanation {
  jobId: string;
  /** Null: its schedule has not made it yet. */
  status: JobStatus | null;
  sentence: string;
  /** What keeps it from running; null when nothing does. */
  gate: string | null;
  /** When that changes, or when it ended, as far as anybody knows. */
  at: Date | null;
  /** Every gate that was asked, in order. */
  checked: { gate: string; passed: boolean; sentence: string }[];
}

export interface ExplainParts {
  store: Pick<
    Store,
    'findJob' | 'findSchedule' | 'findRuns' | 'findSkipsAt' | 'findWorkers' | 'findLockedSuspects'
  >;
  clock: Clock;
}

/** Null when there is no such job, and no schedule that would make it. */
export async function explainJob(
  parts: ExplainParts,
  jobId: string,
  timezone: string,
): Promise<Explanation | null> {
  checkJobId(jobId);
  const facts = await readFacts(parts, asStored(jobId, timezone));
  return facts === null ? null : explain(facts);
}

/** Asks the gates, up to the one after which the rest does not matter. Pure. */
export function explain(facts: Facts, gates: readonly Gate[] = GATES): Explanation {
  const { id: jobId, job, now } = facts;
  const checked: Explanation['checked'] = [];
  let reason: Pick<Explanation, 'gate' | 'sentence' | 'at'> | undefined;
  for (const gate of gates) {
    const blocked = gate.explain(facts);
    const sentence = blocked?.sentence ?? gate.passed;
    checked.push({ gate: gate.name, passed: blocked === undefined, sentence });
    if (blocked !== undefined) reason ??= { gate: gate.name, sentence, at: blocked.at };
    if (blocked?.isFinal === true) break;
  }
  const since = job === null ? '' : ` since ${when(job.nextRunAt, now)}`;
  const nothing = `Due${since}, and nothing keeps it from running: a worker claims it with its next look.`;
  return {
    jobId,
    status: job?.status ?? null,
    ...(reason ?? { gate: null, sentence: nothing, at: null }),
    checked,
  };
}

async function readFacts({ store, clock }: ExplainParts, id: string): Promise<Facts | null> {
  const job = await store.findJob(id);
  const workers = (await listWorkers(store, clock)).filter(({ isLive }) => isLive);
  const suspects = job !== null && isSuspect(job) ? await store.findLockedSuspects(MOST_WORKERS) : [];
  const known = { id, job, workers, suspects, now: clock.now() };
  const none = { occurrence: null, schedule: null, scheduleFault: null, active: null, skip: null };
  if (job !== null) return { ...known, ...none };

  const scheduleId = scheduleOf(id);
  const schedule = scheduleId === undefined ? null : await store.findSchedule(scheduleId);
  if (scheduleId === undefined || schedule === null) return null;
  const occurrence = id[scheduleId.length] === '@' ? dateOf(id.slice(scheduleId.length + 1)) : null;
  const scheduleFault = unreadable(schedule);
  if (scheduleFault !== undefined) return { ...known, ...none, occurrence, scheduleFault };
  // A run that somebody asked for is known only while it is in line.
  if (occurrence === null && !schedule.owed.some((owed) => owed.id === id)) return null;
  const runs = schedule.active === null ? null : await store.findRuns([schedule.active]);
  const active = [...(runs?.values() ?? [])].find(({ status }) => !isFinished(status)) ?? null;
  const skips = occurrence === null ? [] : await store.findSkipsAt(scheduleId, occurrence);
  const skip = skips.find((record) => covers(record, occurrence)) ?? null;
  return { ...known, ...none, occurrence, schedule, active, skip };
}

/** People write the time of an occurrence in several ways; the id of its job has it in one. */
function asStored(id: string, timezone: string): string {
  const [, schedule, text] = /^([^@!#]+)@(.+)$/.exec(id) ?? [];
  const date = text === undefined ? undefined : readInstant(text, timezone);
  return schedule === undefined || date === undefined ? id : `${schedule}@${date.toISOString()}`;
}

function covers({ at, until }: SkipDocument, occurrence: Date | null): boolean {
  return occurrence !== null && at <= occurrence && occurrence < until;
}

function dateOf(text: string): Date | null {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) || date.toISOString() !== text ? null : date;
}

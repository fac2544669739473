import type { Clock } from '../domain/clock.js';
import { runsOf, skipsOf } from '../domain/owed.js';
import { plan } from '../domain/plan.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';
import { isInline, type Definition } from './definition.js';
import type { Definitions } from './definitions.js';
import { planAt, takenAt } from './given-time.js';
import { changedSchedule, isCurrent, newSchedule } from './new-schedule.js';
import { entry, inactive, notDue, refused, skipEntry, unfit, type PassEntry } from './pass-entry.js';
import { occurrencesIn, see, type Seen } from './seen-schedule.js';

export interface PreviewParts {
  store: Pick<Store, 'findSchedule' | 'findJob' | 'findRuns'>;
  clock: Clock;
  definitions: Definitions;
  environment: string;
  /** What this process has registered it does not register again. */
  isRegistered: (name: string) => boolean;
}

/** What a pass would do, without writing anything. `at`: what is due then, instead of what is due now. */
export async function previewPass(parts: PreviewParts, at: Date | undefined): Promise<PassEntry[]> {
  const { store, clock, definitions, environment, isRegistered } = parts;
  const now = clock.now();
  const entries: PassEntry[] = [];
  for (const definition of definitions.inOrder()) {
    const { name } = definition;
    const known = await store.findSchedule(name);
    const stored = known !== null && isRegistered(name) ? known : asRegistered(definition, known, now);
    const reason =
      refused(definition, environment) ??
      unfit(stored) ??
      inactive(stored) ??
      (at && (await takenAt(store, stored, at, now)));
    const [seen] = reason === undefined ? await see(store, [stored]) : [];
    if (reason !== undefined) entries.push(reason);
    if (seen !== undefined) entries.push(...planned(definition, seen, at, now));
  }
  return entries;
}

/** The schedule as a pass would have it before it looks. */
function asRegistered(
  { name, schedule, hash }: Definition,
  known: ScheduleDocument | null,
  now: Date,
): ScheduleDocument {
  if (known === null) return newSchedule(name, 'code', schedule, hash, now);
  return isCurrent(known, hash) ? known : { ...known, ...changedSchedule(known, schedule, hash, now) };
}

function planned(
  definition: Definition,
  { schedule, active }: Seen,
  at: Date | undefined,
  now: Date,
): PassEntry[] {
  const { name } = definition;
  const made =
    at === undefined ? plan(schedule, occurrencesIn(schedule), active, now) : planAt(schedule, active, at);
  const entries = [
    ...runsOf(made?.owed ?? []).map((run) =>
      entry(name, isInline(definition) ? 'run' : 'enqueued', null, run.id, run.at),
    ),
    ...skipsOf(made?.owed ?? []).map((skip) => skipEntry(name, skip)),
  ];
  return entries.length > 0 ? entries : [notDue(schedule)];
}

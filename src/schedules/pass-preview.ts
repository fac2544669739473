import type { Clock } from '../domain/clock.js';
import { runsOf, skipsOf } from '../domain/owed.js';
import { plan } from '../domain/plan.js';
import type { ScheduleDocument } from '../domain/schedule.js';
import type { Store } from '../store/store.js';
import { isInline, type Definition } from './definition.js';
import type { Definitions } from './definitions.js';
import { planAt } from './frozen-time.js';
import { changedSchedule, newSchedule } from './new-schedule.js';
import { entry, inactive, notDue, refused, skipEntry, type PassEntry } from './pass-entry.js';
import { occurrencesIn, see, type Seen } from './seen-schedule.js';

export interface PreviewParts {
  store: Pick<Store, 'findSchedule' | 'findRuns'>;
  clock: Clock;
  definitions: Definitions;
  environment: string;
}

/** What a pass would do, without writing anything. `at`: what is due then, instead of what is due now. */
export async function previewPass(parts: PreviewParts, at: Date | undefined): Promise<PassEntry[]> {
  const { store, clock, definitions, environment } = parts;
  const now = clock.now();
  const entries: PassEntry[] = [];
  for (const definition of definitions.inOrder()) {
    const stored = asRegistered(definition, await store.findSchedule(definition.name), now);
    const reason = refused(definition, environment) ?? inactive(stored);
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
  return known.hash === hash ? known : { ...known, ...changedSchedule(known, schedule, hash, now) };
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

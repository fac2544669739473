import { runsOf, skipsOf } from '../../domain/schedule/pending.js';
import { plan } from '../../domain/schedule/plan.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import { type Definition, isInline } from '../definition/definition.js';
import type { DefinitionSync } from '../enqueue/definition-sync.js';
import { activeOccurrences, loadSnapshot, type ScheduleSnapshot } from '../enqueue/schedule-planner.js';
import { applyDefinition, isCurrent, newSchedule } from '../stored/schedule-document.js';
import { existingEntryAt, type PassPreviewDeps, planAt } from './definition-pass.js';
import { entry, skippedInactive, notDueEntry, type PassEntry, skippedHere, skipEntry } from './pass-entry.js';

/** What a pass would do. Writes nothing. `at`: what is due at this instant instead of now. */
export async function previewPass(
  { store, clock, definitions, options }: PassPreviewDeps,
  definitionSync: Pick<DefinitionSync, 'isRegistered'>,
  at: Date | undefined,
): Promise<PassEntry[]> {
  const now = clock.now();
  const entries: PassEntry[] = [];
  for (const definition of definitions.inOrder()) {
    const { name } = definition;
    const known = await store.findSchedule(name);
    // A pass does not register a definition again that this process has registered.
    const isRegistered = known !== null && definitionSync.isRegistered(name);
    const stored = isRegistered ? known : asRegistered(definition, known, now, at === undefined);
    const reason =
      skippedHere(definition, options.environment) ??
      skippedInactive(stored) ??
      (at && (await existingEntryAt(store, stored, at, now)));
    if (reason !== undefined) entries.push(reason);
    else entries.push(...toEntries(definition, await loadSnapshot(store, stored), at, now));
  }
  return entries;
}

/** The schedule as a pass would register it. */
function asRegistered(
  { name, schedule, hash }: Definition,
  known: ScheduleDocument | null,
  now: Date,
  includeCurrentMinute: boolean,
): ScheduleDocument {
  if (known === null) return newSchedule(name, 'code', schedule, hash, now, { includeCurrentMinute });
  return isCurrent(known, hash) ? known : { ...known, ...applyDefinition(known, schedule, hash, now) };
}

function toEntries(
  definition: Definition,
  snapshot: ScheduleSnapshot,
  at: Date | undefined,
  now: Date,
): PassEntry[] {
  const { name } = definition;
  const { schedule, active } = snapshot;
  const planned =
    at === undefined ? plan(schedule, activeOccurrences(schedule), active, now) : planAt(snapshot, at);
  const pending = planned?.pending ?? [];
  const result = isInline(definition) ? 'run' : 'enqueued';
  const entries = [
    ...runsOf(pending).map((run) => entry(name, result, null, run.id, run.at)),
    ...skipsOf(pending).map((skip) => skipEntry(name, skip)),
  ];
  return entries.length > 0 ? entries : [notDueEntry(schedule)];
}

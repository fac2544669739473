import { error, ok, some, warning, type Check } from './check.js';
import type { CheckParts } from './facts.js';

/** Workers look every few seconds: an occurrence undecided for this long, in milliseconds, is nobody's. */
const LATE = 120_000;
/** A run in line behind another may wait as long as that one takes; after a day somebody should look. */
const OWED_LONG = 86_400_000;
const MOST_FOUND = 10;

export const lateSchedules: Check = {
  name: 'lateSchedules',
  async examine(_, { store, clock }) {
    const late = await store.findLateSchedules(ago(clock, LATE), MOST_FOUND);
    if (late.length === 0) return ok('Schedules keep up.');
    const finding = `Schedules fall behind: ${some(late.map(({ _id, nextRunAt }) => `${_id} (${nextRunAt?.toISOString() ?? ''})`))}.`;
    const advice =
      'Stored ones need any live worker, those of code one that has the definition and is in their environment: start it, or remove them.';
    return error(finding, advice);
  },
};

export const disabledSchedules: Check = {
  name: 'disabledSchedules',
  async examine(_, { store }) {
    const disabled = await store.findDisabledSchedules(MOST_FOUND);
    if (disabled.length === 0) return ok('All rules can be read.');
    const finding = `Schedules are disabled: ${some(disabled.map(({ _id, disabledReason }) => `${_id} (${disabledReason ?? ''})`))}.`;
    return error(finding, 'Correct their rules with updateSchedule(), or remove them.');
  },
};

export const owedRuns: Check = {
  name: 'owedRuns',
  async examine(_, { store, clock }) {
    const owing = await store.findLongOwing(ago(clock, OWED_LONG), MOST_FOUND);
    if (owing.length === 0) return ok('What was decided is carried out.');
    const finding = `Runs are owed for more than a day: ${some(owing.map(({ _id }) => _id))}.`;
    return warning(finding, 'Look at the run before them (explain it), and cancel it if it hangs.');
  },
};

function ago(clock: CheckParts['clock'], ms: number): Date {
  return new Date(clock.now().getTime() - ms);
}

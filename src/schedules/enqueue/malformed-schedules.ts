import type { Clock } from '../../domain/clock.js';
import { toError } from '../../domain/errors.js';
import type { ScheduleDocument } from '../../domain/schedule/schedule.js';
import { truncateUtf8 } from '../../domain/text.js';
import type { EventBus } from '../../runtime/event-bus.js';
import { isResultUnknown } from '../../store/mongo-errors.js';
import type { Store } from '../../store/store.js';
import { findMalformation, idText } from '../stored/stored-schedule-check.js';

const MAX_REASON_BYTES = 2000;

interface MalformedSchedulesDeps {
  store: Pick<Store, 'disableSchedule'>;
  clock: Clock;
  events: EventBus;
}

/** Takes malformed stored schedules out of the way, so that they affect no other: reports, counts and disables them. */
export class MalformedSchedules {
  readonly #deps: MalformedSchedulesDeps;
  /** Ids that were reported. */
  readonly #reported = new Set<string>();

  constructor(deps: MalformedSchedulesDeps) {
    this.#deps = deps;
  }

  /** The valid schedules of the list. The others are disabled; `onMalformed` is called for each. */
  async removeFrom(
    schedules: readonly ScheduleDocument[],
    onMalformed: (schedule: ScheduleDocument) => void,
  ): Promise<ScheduleDocument[]> {
    const valid: ScheduleDocument[] = [];
    for (const schedule of schedules) {
      if (await this.disable(schedule)) onMalformed(schedule);
      else valid.push(schedule);
    }
    return valid;
  }

  /** False if the schedule is valid. */
  async disable(schedule: ScheduleDocument): Promise<boolean> {
    const malformation = findMalformation(schedule);
    const scheduleId = idText(schedule);
    if (malformation === undefined) {
      this.#reported.delete(scheduleId);
      return false;
    }
    const { store, clock, events } = this.#deps;
    const reason = truncateUtf8(malformation, MAX_REASON_BYTES);
    if (!this.#reported.has(scheduleId)) {
      const count = this.#reported.add(scheduleId).size;
      events.emit('schedule:invalid', { scheduleId, reason, count });
    }
    if (!schedule.isActive && schedule.disabledReason === reason) return true;
    try {
      await store.disableSchedule(schedule, reason, clock.now());
    } catch (thrown) {
      // A user that may not bypass the validator cannot disable every document. Then it is only left out.
      if (isResultUnknown(thrown)) throw thrown;
      events.reportError('disable schedule', toError(thrown), { subject: scheduleId });
    }
    return true;
  }
}

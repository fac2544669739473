import type { CronField } from './cron.js';
import type { FieldSchedule } from './field-schedule.js';

/** Values a field of the clock or the calendar must have, whatever the rest of the rule says. */
export type Constraints = Partial<Record<CronField, readonly number[]>>;

/** When a schedule is due, as it is stored. One of `cron`, `fields` and `every` is its base. */
export interface Rule {
  readonly cron?: string;
  /** Fields of `cron` that only stand for "some time": a constraint takes their place. */
  readonly loose?: readonly CronField[];
  readonly fields?: FieldSchedule;
  /** Milliseconds of real time between two occurrences. */
  readonly every?: number;
  readonly only?: Constraints;
  /** `['09:00', '17:30']`, both included; past midnight when the second is the earlier one. */
  readonly between?: readonly [string, string];
  /** Days without occurrences: `'2026-12-24'`, or `'12-25'` for every year. */
  readonly except?: readonly string[];
  readonly timezone: string;
  readonly startsAt?: Date;
  readonly endsAt?: Date;
}

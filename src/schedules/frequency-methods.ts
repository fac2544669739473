import { FREQUENCIES, WEEKDAYS, type FrequencyName } from '../domain/frequencies.js';

/** A method for each frequency helper. */
export type FrequencyMethods<B> = {
  [K in FrequencyName]: (...args: Parameters<(typeof FREQUENCIES)[K]['cron']>) => B;
};

/** A method for each name of days of the week. */
export type WeekdayMethods<B> = { [K in keyof typeof WEEKDAYS]: () => B };

interface Builder {
  frequency(name: string, marked: () => string): unknown;
  onDays(name: string, days: readonly number[]): unknown;
}

/** Defines both on the prototype of a builder, from their tables. */
export function defineFrequencies(prototype: object): void {
  for (const [name, { cron }] of Object.entries(FREQUENCIES)) {
    const marked = cron as (...args: unknown[]) => string;
    Object.defineProperty(prototype, name, {
      value: function (this: Builder, ...args: unknown[]) {
        return this.frequency(name, () => marked(...args));
      },
    });
  }
  for (const [name, days] of Object.entries(WEEKDAYS)) {
    Object.defineProperty(prototype, name, {
      value: function (this: Builder) {
        return this.onDays(name, days);
      },
    });
  }
}

import type { EventName, SchedulerEvents } from '../../src/index.js';

interface Observable {
  on<E extends EventName>(name: E, listener: (event: SchedulerEvents[E]) => unknown): unknown;
  off<E extends EventName>(name: E, listener: (event: SchedulerEvents[E]) => unknown): unknown;
}

/** The next event of that name that `matches`. Ask before doing what causes it. */
export function nextEvent<E extends EventName>(
  scheduler: Observable,
  name: E,
  matches: (event: SchedulerEvents[E]) => boolean = () => true,
): Promise<SchedulerEvents[E]> {
  return new Promise((resolve) => {
    const listener = (event: SchedulerEvents[E]): void => {
      if (!matches(event)) return;
      scheduler.off(name, listener);
      resolve(event);
    };
    scheduler.on(name, listener);
  });
}

/** Resolves with all of them after `count` events of that name. */
export function countEvents<E extends EventName>(
  scheduler: Observable,
  name: E,
  count: number,
): Promise<SchedulerEvents[E][]> {
  const events: SchedulerEvents[E][] = [];
  return nextEvent(scheduler, name, (event) => events.push(event) === count).then(() => events);
}

/** Every event of these names from now on, in order, as they come. */
export function recordEvents(
  scheduler: Observable,
  ...names: EventName[]
): { name: EventName; event: unknown }[] {
  const record: { name: EventName; event: unknown }[] = [];
  for (const name of names) scheduler.on(name, (event) => record.push({ name, event }));
  return record;
}

/** A promise with its handles, for handlers that wait for the test and tests that wait for handlers. */
export function signal<T = void>(): { promise: Promise<T>; fire: (value: T) => void } {
  let fire: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => (fire = resolve));
  return { promise, fire };
}

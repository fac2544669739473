import type { EventName, SchedulerEvents } from '../../src/index.js';

interface Observable {
  on<E extends EventName>(name: E, listener: (event: SchedulerEvents[E]) => unknown): unknown;
  off<E extends EventName>(name: E, listener: (event: SchedulerEvents[E]) => unknown): unknown;
}

/** The next event of that name that `matches`. Call it before the action that causes the event. */
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

/** Resolves with the next `count` events of that name. */
export function countEvents<E extends EventName>(
  scheduler: Observable,
  name: E,
  count: number,
): Promise<SchedulerEvents[E][]> {
  const events: SchedulerEvents[E][] = [];
  return nextEvent(scheduler, name, (event) => events.push(event) === count).then(() => events);
}

/** An array to which every event of these names is added from now on. */
export function recordEvents(
  scheduler: Observable,
  ...names: EventName[]
): { name: EventName; event: unknown }[] {
  const record: { name: EventName; event: unknown }[] = [];
  for (const name of names) scheduler.on(name, (event) => record.push({ name, event }));
  return record;
}

/** A promise that `fire` resolves: lets a handler wait for the test, or the test for a handler. */
export function signal<T = void>(): { promise: Promise<T>; fire: (value: T) => void } {
  let fire: (value: T) => void = () => undefined;
  const promise = new Promise<T>((resolve) => (fire = resolve));
  return { promise, fire };
}

/** A function that blocks: `entered` resolves when it is called, and `release` makes it return. */
export function blocker<T = void>(): {
  block: () => Promise<T>;
  entered: Promise<void>;
  release: (value: T) => void;
} {
  const [entered, released] = [signal(), signal<T>()];
  const block = (): Promise<T> => {
    entered.fire();
    return released.promise;
  };
  return { block, entered: entered.promise, release: released.fire };
}

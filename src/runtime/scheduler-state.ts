import { ChronosError } from '../domain/errors.js';
import type { LifecycleState } from '../domain/events.js';
import type { EventBus } from './event-bus.js';

const ALLOWED: Record<LifecycleState, readonly LifecycleState[]> = {
  Stopped: ['Starting', 'Stopping'],
  Starting: ['Running', 'Error', 'Stopping'],
  Running: ['Stopping', 'Error'],
  Stopping: ['Stopped', 'Error'],
  Error: ['Starting', 'Stopping', 'Stopped'],
};

/** Stopped → Starting → Running → Stopping → Stopped, or Error. Every change emits `worker:state`. */
export class SchedulerState {
  readonly #events: EventBus;
  #current: LifecycleState = 'Stopped';

  constructor(events: EventBus) {
    this.#events = events;
  }

  get current(): LifecycleState {
    return this.#current;
  }

  enter(state: LifecycleState, error?: Error): void {
    const previous = this.#current;
    if (!ALLOWED[previous].includes(state)) {
      throw new ChronosError('WRONG_STATE', `a scheduler that is ${previous} cannot become ${state}`);
    }
    this.#current = state;
    this.#events.emit('worker:state', { state, previous, ...(error !== undefined && { error }) });
  }
}

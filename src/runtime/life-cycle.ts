import { ChronosError } from '../domain/errors.js';
import type { LifecycleState } from '../domain/events.js';
import type { EventBus } from './event-bus.js';

const LEGAL: Record<LifecycleState, readonly LifecycleState[]> = {
  Stopped: ['Starting', 'Stopping'],
  Starting: ['Running', 'Error', 'Stopping'],
  Running: ['Stopping'],
  Stopping: ['Stopped', 'Error'],
  Error: ['Starting', 'Stopping'],
};

/** Stopped → Starting → Running → Stopping → Stopped, or Error; every change is announced. */
export class LifeCycle {
  readonly #events: EventBus;
  #state: LifecycleState = 'Stopped';

  constructor(events: EventBus) {
    this.#events = events;
  }

  get state(): LifecycleState {
    return this.#state;
  }

  enter(state: LifecycleState, error?: Error): void {
    const previous = this.#state;
    if (!LEGAL[previous].includes(state)) {
      throw new ChronosError('WRONG_STATE', `a scheduler that is ${previous} cannot become ${state}`);
    }
    this.#state = state;
    this.#events.emit('worker:state', { state, previous, ...(error !== undefined && { error }) });
  }
}

import type { DispatchOptions } from '../config/dispatch-options.js';
import type { RetryOptions } from '../config/handler-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { JobHandle } from './job-handle.js';

/** Connects if necessary and dispatches: drafts and builders exist before there is a connection. */
export type DispatchFunction = (
  target: unknown,
  payload?: unknown,
  options?: DispatchOptions,
) => Promise<JobHandle>;

/** Immutable fluent dispatch; the task type comes last: `scheduler.delay('1h').args({ … }).dispatch('emails')`. */
export class Draft<Target> {
  readonly #dispatch: DispatchFunction;
  readonly #payload: unknown;
  readonly #options: DispatchOptions;

  constructor(dispatch: DispatchFunction, payload?: unknown, options: DispatchOptions = {}) {
    this.#dispatch = dispatch;
    this.#payload = payload;
    this.#options = options;
  }

  args(payload: unknown): Draft<Target> {
    return new Draft(this.#dispatch, payload, this.#options);
  }

  delay(delay: Duration): Draft<Target> {
    const { at, ...rest } = this.#options;
    return new Draft(this.#dispatch, this.#payload, { ...rest, delay });
  }

  at(at: Instant): Draft<Target> {
    const { delay, ...rest } = this.#options;
    return new Draft(this.#dispatch, this.#payload, { ...rest, at });
  }

  queue(queue: string): Draft<Target> {
    return this.#with({ queue });
  }

  priority(priority: number): Draft<Target> {
    return this.#with({ priority });
  }

  key(key: string): Draft<Target> {
    return this.#with({ key });
  }

  retries(retries: RetryOptions): Draft<Target> {
    return this.#with({ retries });
  }

  dispatch(target: Target): Promise<JobHandle> {
    return this.#dispatch(target, this.#payload, this.#options);
  }

  #with(options: DispatchOptions): Draft<Target> {
    return new Draft(this.#dispatch, this.#payload, { ...this.#options, ...options });
  }
}

/** A draft whose task type is fixed: the name of a definition. */
export interface BoundDraft {
  args(payload: unknown): BoundDraft;
  dispatch(): Promise<JobHandle>;
}

export function bindDraft(draft: Draft<string>, name: string): BoundDraft {
  return {
    args: (payload) => bindDraft(draft.args(payload), name),
    dispatch: () => draft.dispatch(name),
  };
}

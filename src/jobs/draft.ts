import type { DispatchOptions } from '../config/dispatch-options.js';
import type { RetryOptions } from '../config/handler-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { JobHandle } from './job-handle.js';
import type { AnyPayloads, EntryOf, InputOf, ResultOf, Target } from './task-types.js';

/** Connects if necessary and dispatches: drafts and builders exist before there is a connection. */
export type DispatchFunction = (
  target: unknown,
  payload?: unknown,
  options?: DispatchOptions,
) => Promise<JobHandle>;

/**
 * Immutable fluent dispatch; the task type comes last: `scheduler.delay('1h').args({ … }).dispatch('emails')`. `P` is the
 * type of the payload so far.
 */
export class Draft<M extends object = AnyPayloads, P = undefined> {
  readonly #dispatch: DispatchFunction;
  readonly #payload: P | undefined;
  readonly #options: DispatchOptions;

  constructor(dispatch: DispatchFunction, payload?: P, options: DispatchOptions = {}) {
    this.#dispatch = dispatch;
    this.#payload = payload;
    this.#options = options;
  }

  args<Q>(payload: Q): Draft<M, Q> {
    return new Draft<M, Q>(this.#dispatch, payload, this.#options);
  }

  delay(delay: Duration): Draft<M, P> {
    const { at, ...rest } = this.#options;
    return new Draft<M, P>(this.#dispatch, this.#payload, { ...rest, delay });
  }

  at(at: Instant): Draft<M, P> {
    const { delay, ...rest } = this.#options;
    return new Draft<M, P>(this.#dispatch, this.#payload, { ...rest, at });
  }

  queue(queue: string): Draft<M, P> {
    return this.#with({ queue });
  }

  priority(priority: number): Draft<M, P> {
    return this.#with({ priority });
  }

  key(key: string): Draft<M, P> {
    return this.#with({ key });
  }

  retries(retries: RetryOptions): Draft<M, P> {
    return this.#with({ retries });
  }

  /** Only for task types whose payload is that of `args()`. */
  dispatch<T extends Target<M>>(
    target: P extends InputOf<EntryOf<M, T>> ? T : 'the payload of args() does not fit this task type',
  ): Promise<JobHandle<ResultOf<EntryOf<M, T>>>> {
    return this.#dispatch(target, this.#payload, this.#options) as Promise<
      JobHandle<ResultOf<EntryOf<M, T>>>
    >;
  }

  #with(options: DispatchOptions): Draft<M, P> {
    return new Draft<M, P>(this.#dispatch, this.#payload, { ...this.#options, ...options });
  }
}

/** A draft whose task type is fixed: the name of a definition. */
export interface BoundDraft {
  args(payload: unknown): BoundDraft;
  dispatch(): Promise<JobHandle>;
}

export function bindDraft(draft: Draft<AnyPayloads, unknown>, name: string): BoundDraft {
  return {
    args: (payload) => bindDraft(draft.args(payload), name),
    dispatch: () => draft.dispatch(name),
  };
}

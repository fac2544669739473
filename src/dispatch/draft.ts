import type { DispatchOptions } from '../config/dispatch-options.js';
import type { RetryOptions } from '../config/retry-options.js';
import type { Duration } from '../domain/duration.js';
import type { Instant } from '../domain/instant.js';
import type { JobHandle } from './job-handle.js';

export type DispatchDraft = (
  taskType: unknown,
  payload: unknown,
  options: DispatchOptions,
) => Promise<JobHandle>;

/** What and when, before it is known which: `scheduler.delay('1h').args({ … }).dispatch('emails')`. Each call makes a new draft. */
export class Draft<Target> {
  readonly #dispatch: DispatchDraft;
  readonly #payload: unknown;
  readonly #options: DispatchOptions;

  constructor(dispatch: DispatchDraft, payload?: unknown, options: DispatchOptions = {}) {
    this.#dispatch = dispatch;
    this.#payload = payload;
    this.#options = options;
  }

  args(payload: unknown): Draft<Target> {
    return new Draft(this.#dispatch, payload, this.#options);
  }

  delay(delay: Duration): Draft<Target> {
    const { at: _, ...rest } = this.#options;
    return new Draft(this.#dispatch, this.#payload, { ...rest, delay });
  }

  at(at: Instant): Draft<Target> {
    const { delay: _, ...rest } = this.#options;
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

import type { Deadline } from '../runtime/deadlines.js';
import type { AbortKind, Ending } from '../domain/outcome.js';

/** The signal of one attempt, and what follows from aborting it. */
export class Aborting {
  /** Times that were set for it. */
  readonly deadlines: Deadline[] = [];
  #abort: { kind: AbortKind; error: Error } | undefined;
  #control: AbortController | undefined;
  #isOver = false;
  #onStuck: (ending: Ending) => void = () => undefined;

  /** How the handler ends, or that it goes on although it was told to stop long enough ago. */
  ending(handled: Promise<Ending>): Promise<Ending> {
    return new Promise((resolve) => {
      this.#onStuck = resolve;
      void handled.then(resolve);
    });
  }

  get abort(): { kind: AbortKind; error: Error } | undefined {
    return this.#abort;
  }

  /** Made when somebody asks for it: most handlers are through before they look, and a signal costs as much as they do. */
  get signal(): AbortSignal {
    if (this.#control === undefined) {
      this.#control = new AbortController();
      if (this.#abort !== undefined) this.#control.abort(this.#abort.error);
    }
    return this.#control.signal;
  }

  /** The first reason stays. False when it is too late. */
  begin(kind: AbortKind, error: Error): boolean {
    if (this.#abort !== undefined || this.#isOver) return false;
    this.#abort = { kind, error };
    this.#control?.abort(error);
    return true;
  }

  giveUp(): void {
    if (!this.#isOver) this.#onStuck({ kind: 'stuck' });
  }

  /** There is an outcome, or nobody waits for one. */
  end(): void {
    this.#isOver = true;
  }
}

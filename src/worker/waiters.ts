interface Waiter {
  readonly holds: () => boolean;
  readonly resolve: () => void;
}

/** Those who wait until something holds. Whoever changes what they wait for lets them look. */
export class Waiters {
  #waiting: Waiter[] = [];
  #isOver = false;

  until(holds: () => boolean): Promise<void> {
    if (this.#isOver || holds()) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ holds, resolve }));
  }

  look(): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ holds, resolve }) => {
      if (!holds()) return true;
      resolve();
      return false;
    });
  }

  /** Nobody waits any more, whatever holds. */
  release(): void {
    this.#isOver = true;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }
}

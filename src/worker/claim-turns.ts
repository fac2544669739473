/** One claim at a time in this process: each counts the slots that the one before it has left. */
export class ClaimTurns {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves at the end of the last claim that has asked for its turn. */
  get last(): Promise<unknown> {
    return this.#last;
  }

  take<T>(claim: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(claim);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

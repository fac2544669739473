import type { Clock } from '../domain/clock.js';
import type { Output } from './output.js';
import { styled, type Span } from './styled.js';
import { number, span } from './times.js';

const CELLS = 30;
/** How often work of unknown length shows that it goes on. */
const TICK = 250;

/** How far long work has come, on a terminal; nothing anywhere else. */
export class ProgressBar {
  readonly #out: Output;
  readonly #what: string;
  #isDrawn = false;

  constructor(out: Output, what: string) {
    this.#out = out;
    this.#what = what;
  }

  show(done: number, total: number): void {
    const full = Math.round((total === 0 ? 1 : Math.min(1, done / total)) * CELLS);
    this.#draw([
      styled('green', '█'.repeat(full)),
      styled('dim', '░'.repeat(CELLS - full)),
      ` ${number(done)} of ${number(Math.max(done, total))}`,
    ]);
  }

  /** While nobody knows how far it has come: a block that moves, and the time it took so far. */
  async during<T>(clock: Clock, work: Promise<T>): Promise<T> {
    const over = new AbortController();
    const moving = this.#move(clock, over.signal);
    try {
      return await work;
    } finally {
      over.abort();
      await moving;
      this.end();
    }
  }

  async #move(clock: Clock, over: AbortSignal): Promise<void> {
    const began = clock.monotonic();
    for (let tick = 0; !over.aborted; tick++) {
      const at = tick % (CELLS - 2);
      const left = styled('dim', '░'.repeat(at));
      const right = styled('dim', '░'.repeat(CELLS - 3 - at));
      this.#draw([left, styled('green', '███'), right, ` ${span(clock.monotonic() - began)}`]);
      await clock.sleep(TICK, over);
    }
  }

  #draw(bar: readonly Span[]): void {
    if (!this.#out.isTerminal) return;
    this.#isDrawn = true;
    this.#out.redraw([`${this.#what} `, ...bar]);
  }

  end(): void {
    if (this.#isDrawn) this.#out.redraw('');
    this.#isDrawn = false;
  }
}

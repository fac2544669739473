import type { Clock } from '../../domain/clock.js';
import { number, formatDuration } from './format.js';
import type { Output } from './output.js';
import { type Span, styled } from './styled.js';

const BAR_WIDTH = 30;
const TICK_MS = 250;

/** Shows progress on a terminal; prints nothing elsewhere. */
export class ProgressBar {
  readonly #out: Output;
  readonly #label: string;
  #isDrawn = false;

  constructor(out: Output, label: string) {
    this.#out = out;
    this.#label = label;
  }

  show(done: number, total: number): void {
    const full = Math.round((total === 0 ? 1 : Math.min(1, done / total)) * BAR_WIDTH);
    this.#draw([
      styled('green', '█'.repeat(full)),
      styled('dim', '░'.repeat(BAR_WIDTH - full)),
      ` ${number(done)} of ${number(Math.max(done, total))}`,
    ]);
  }

  /** Shows a moving block and the elapsed time, for work of unknown length. */
  async during<T>(clock: Clock, work: Promise<T>): Promise<T> {
    const done = new AbortController();
    const animation = this.#animate(clock, done.signal);
    try {
      return await work;
    } finally {
      done.abort();
      await animation;
      this.end();
    }
  }

  async #animate(clock: Clock, done: AbortSignal): Promise<void> {
    const startedAt = clock.monotonic();
    for (let tick = 0; !done.aborted; tick++) {
      const at = tick % (BAR_WIDTH - 2);
      const left = styled('dim', '░'.repeat(at));
      const right = styled('dim', '░'.repeat(BAR_WIDTH - 3 - at));
      this.#draw([left, styled('green', '███'), right, ` ${formatDuration(clock.monotonic() - startedAt)}`]);
      await clock.sleep(TICK_MS, done);
    }
  }

  #draw(bar: readonly Span[]): void {
    if (!this.#out.isTerminal) return;
    this.#isDrawn = true;
    this.#out.redraw([`${this.#label} `, ...bar]);
  }

  end(): void {
    if (this.#isDrawn) this.#out.redraw('');
    this.#isDrawn = false;
  }
}

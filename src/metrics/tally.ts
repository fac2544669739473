import { ERROR_KINDS, type ErrorKind } from './error-kind.js';
import type { Instruments } from './instruments.js';

/** Won and lost, ever. */
export class Score {
  won = 0;
  lost = 0;

  add(won: number, lost: number): void {
    this.won += won;
    this.lost += lost;
  }

  /** Of all that was tried; 1 when nothing was. */
  get ratio(): number {
    return this.won + this.lost === 0 ? 1 : this.won / (this.won + this.lost);
  }
}

/** What has to be known beside the metrics: prom-client only writes, and says nothing back. */
export class Tally {
  /** Claims and decisions about schedules. */
  readonly locks = new Score();
  readonly pushes = new Score();
  readonly errors: Record<ErrorKind, number> = {
    connection: 0,
    lock: 0,
    decode: 0,
    push: 0,
    cron: 0,
    other: 0,
  };
  /** Monotonic time since when it is Running. */
  runningSince: number | undefined;
  /** When a loop last went well that asks the database: for people, and monotonic, by which its age is measured. */
  lastGoodCycle: { at: Date; monotonic: number } | null = null;
  readonly #errors: Instruments['errors'];

  constructor({ errors }: Pick<Instruments, 'errors'>) {
    this.#errors = errors;
    // A kind that appears with its first error would be a rate of nothing.
    for (const kind of ERROR_KINDS) errors.inc({ kind }, 0);
  }

  count(kind: ErrorKind, times = 1): void {
    this.errors[kind] += times;
    this.#errors.inc({ kind }, times);
  }
}

import { ChronosError } from '../domain/errors.js';
import { type Operation, OPERATIONS } from '../domain/events.js';
import { isResultUnknown } from '../store/mongo-errors.js';
import type { Instruments } from './instruments.js';

/** Every kind of error that is counted separately. */
export const ERROR_KINDS = ['connection', 'lock', 'decode', 'push', 'cron', 'other'] as const;

/** The cause of an error: the connection, a lock, a stored document, the insert of a scheduled job, or a rule. */
export type ErrorKind = (typeof ERROR_KINDS)[number];

/** Counts since the start of the process. */
export class SuccessRatio {
  won = 0;
  lost = 0;

  add(won: number, lost: number): void {
    this.won += won;
    this.lost += lost;
  }

  /** 1 if nothing was counted yet. */
  get ratio(): number {
    return this.won + this.lost === 0 ? 1 : this.won / (this.won + this.lost);
  }
}

/** What `health()` reports, kept here because the values of prom-client's metrics cannot be read back. */
export class HealthState {
  /** Claims and schedule plans. */
  readonly locks = new SuccessRatio();
  readonly pushes = new SuccessRatio();
  readonly errors = Object.fromEntries(ERROR_KINDS.map((kind) => [kind, 0])) as Record<ErrorKind, number>;
  /** Monotonic time. */
  runningSince: number | undefined;
  /** When a loop that uses the database last succeeded: as a date, and monotonic to measure its age. */
  lastGoodCycle: { at: Date; monotonic: number } | null = null;
  readonly #errors: Instruments['errors'];

  constructor({ errors }: Pick<Instruments, 'errors'>) {
    this.#errors = errors;
    // Start every kind at 0: a counter that first appears with the value 1 has no rate.
    for (const kind of ERROR_KINDS) errors.inc({ kind }, 0);
  }

  count(kind: ErrorKind, times = 1): void {
    this.errors[kind] += times;
    this.#errors.inc({ kind }, times);
  }
}

/** By name: redacted errors and errors of another thread are not instances of the driver's classes. */
const CONNECTION_ERROR_NAME =
  /^Mongo(Network|ServerSelection|WaitQueue|PoolCleared|PoolClosed|TopologyClosed|NotConnected|ServerClosed)/;
/** The renewal thread reports only the message and the code of an error. */
const CONNECTION_ERROR_MESSAGE =
  /\bE(CONN[A-Z]+|PIPE|HOSTUNREACH|NETUNREACH|NOTFOUND|TIMEDOUT)\b|connection .*(closed|timed out)|server selection/i;

/** Which kind of error an operation had. */
export function errorKind(operation: Operation, error: Error): ErrorKind {
  if (isConnectionError(error)) return 'connection';
  const kind = OPERATIONS[operation].errorKind;
  // MongoDB rejected the plan: the schedule's rule is not the cause.
  if (kind === 'cron' && error.name.startsWith('Mongo')) return 'other';
  return kind ?? (error.name.startsWith('BSON') ? 'decode' : 'other');
}

/** True if the error or one of its causes is a connection error. */
function isConnectionError(error: Error): boolean {
  if (error instanceof ChronosError && error.code === 'MONGODB_UNREACHABLE') return true;
  if (isResultUnknown(error) || CONNECTION_ERROR_NAME.test(error.name)) return true;
  if (CONNECTION_ERROR_MESSAGE.test(error.message)) return true;
  return error.cause instanceof Error && isConnectionError(error.cause);
}

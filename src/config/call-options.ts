import { optionsError } from './options.js';
import { duration, record } from './readers.js';

const readWait = record<{ timeout: number }>({ timeout: duration() });
const readWithLock = record<{ wait: number }>({ wait: duration() });
const readRequest = record<{ taskType: unknown; payload: unknown; options: unknown }>({
  taskType: anything,
  payload: anything,
  options: anything,
});

function anything(value: unknown): unknown {
  return value;
}

/** Milliseconds `handle.wait()` waits; without end by default. */
export function resolveWait(input: unknown): number {
  return checked((faults) => readWait(input, 'wait() options', faults)).timeout ?? Infinity;
}

/** Milliseconds `withLock()` waits for the lock; not at all by default. */
export function resolveWithLock(input: unknown): number {
  return checked((faults) => readWithLock(input, 'withLock() options', faults)).wait ?? 0;
}

/** One job of `dispatchMany`: these three fields and no others. A delay beside them would be lost silently. */
export function checkRequest(input: unknown): void {
  checked((faults) => readRequest(input, 'request', faults));
}

function checked<T extends object>(read: (faults: string[]) => Partial<T> | undefined): Partial<T> {
  const faults: string[] = [];
  const values = read(faults) ?? {};
  if (faults.length > 0) throw optionsError('INVALID_ARGUMENT', faults);
  return values;
}

import { ChronosError } from '../domain/errors.js';

/** One error that names every fault that was found. */
export function optionsError(
  code: 'INVALID_OPTIONS' | 'INVALID_ARGUMENT' | 'INVALID_ENVIRONMENT' | 'INVALID_SCHEDULE',
  faults: string[],
): ChronosError {
  const list =
    faults.length === 1
      ? (faults[0] ?? '')
      : `${faults.length} faults:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`;
  return new ChronosError(code, list);
}

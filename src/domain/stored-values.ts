import { MAX_DURATION_MS } from './duration.js';
import * as v from './validation.js';

// Values of stored documents, which other programs may have written. A number is neither NaN nor infinite here.

export const text = v.matching<string>('a string', (value) => typeof value === 'string');

export const count = v.matching<number>('a number of at least 0', isCount);

export const priority = v.matching<number>(
  'a number from 0 to 1000',
  (value) => isCount(value) && value <= 1000,
);

export const milliseconds = v.matching<number>(
  'a number of milliseconds from 0 to 100 years',
  isMilliseconds,
);

export function isCount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

export function isMilliseconds(value: unknown): value is number {
  return isCount(value) && value <= MAX_DURATION_MS;
}

export function isTextOrNull(value: unknown): boolean {
  return value === null || typeof value === 'string';
}

import { copyPlainData } from './payload.js';
import { cutText, jsonText } from './text.js';

export const LONGEST_RESULT_BYTES = 16 * 1024;

export interface StoredResult {
  result: unknown;
  resultCut: boolean;
}

/**
 * What is kept of a handler's result: all of it, or, when it is too large or cannot be stored, the first part of
 * its JSON text. A result never fails a job that did its work.
 */
export function storedResult(value: unknown): StoredResult {
  if (value === undefined || value === null) return { result: null, resultCut: false };
  const copied = plainCopy(value);
  const json = jsonText(value);
  if ('copy' in copied && Buffer.byteLength(json) <= LONGEST_RESULT_BYTES) {
    return { result: copied.copy, resultCut: false };
  }
  return { result: cutText(json, LONGEST_RESULT_BYTES), resultCut: true };
}

function plainCopy(value: unknown): ReturnType<typeof copyPlainData> {
  try {
    return copyPlainData(value, 'result');
  } catch {
    // A getter that throws, for one.
    return { faults: [] };
  }
}

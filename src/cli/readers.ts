import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { readDuration } from '../domain/duration.js';
import { secondsOfDay } from '../domain/frequencies.js';
import { hint } from '../domain/nearest.js';

// What options are read with. Their faults are faults of usage, and name the option.

export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Milliseconds as a number, or text with its unit, as everywhere. */
export function duration(text: string): number {
  const read = readDuration(/^\d+$/.test(text) ? Number(text) : text);
  if ('fault' in read) throw new InvalidArgumentError(`It ${read.fault}.`);
  return read.ms;
}

/** Milliseconds between two looks: each reads the database, which must not be all that it does. */
const LEAST_INTERVAL = 250;

/** How often to look. */
export function interval(text: string): number {
  const ms = duration(text);
  if (ms >= LEAST_INTERVAL) return ms;
  throw new InvalidArgumentError(`It must be at least ${LEAST_INTERVAL} ms: each look reads the database.`);
}

/** One of a few words, in capitals or not. */
export function oneOf(values: readonly string[]): (text: string) => string {
  return (text) => {
    const found = values.find((value) => value.toLowerCase() === text.toLowerCase());
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`It must be one of ${values.join(', ')}${hint(text, values)}.`);
  };
}

/** `a,b,c`. */
export function list(text: string): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.every((word) => word !== '')) return words;
  throw new InvalidArgumentError('It must be names with commas between them.');
}

/** `09:00,17:30`. */
export function times(text: string): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.length === 2 && words.every((word) => secondsOfDay(word) !== undefined)) return words;
  throw new InvalidArgumentError('It must be two times with a comma between them, such as 09:00,17:30.');
}

/** JSON, or `@file` for the JSON in a file, `@-` for that on standard input. */
export function json(text: string): unknown {
  const source = text.startsWith('@') ? fileText(text.slice(1)) : text;
  try {
    return JSON.parse(source) as unknown;
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON or @file: ${(error as Error).message}.`);
  }
}

export function jsonObject(text: string): unknown {
  const value = json(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new InvalidArgumentError('It must be a JSON object.');
}

function fileText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new InvalidArgumentError(`The file cannot be read: ${(error as Error).message}.`);
  }
}

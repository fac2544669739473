import { readFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { duration, fromText, type Shape } from '../domain/validation.js';

/** The words of a command line, and its options by their names in camelCase. */
export class Arguments {
  readonly words: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(words: readonly string[], options: Readonly<Record<string, unknown>>) {
    this.words = words;
    this.#options = options;
  }

  /** The first word. Commander has checked that all required ones are present. */
  get word(): string {
    return this.words[0] ?? '';
  }

  flag(name: string): boolean {
    return this.#options[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#options[name];
    return typeof value === 'string' ? value : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#options[name];
    return typeof value === 'number' ? value : undefined;
  }

  list(name: string): readonly string[] | undefined {
    const value = this.#options[name];
    return Array.isArray(value) ? (value as string[]) : undefined;
  }

  value(name: string): unknown {
    return this.#options[name];
  }

  /**
   * The options that are set, renamed to the keys of `names`. `never` fits every option type of the Scheduler, whose
   * methods check the values.
   */
  picked<K extends string>(names: Readonly<Record<K, string>>): Partial<Record<K, never>> {
    const picked = Object.entries<string>(names).flatMap(([name, option]) => {
      const value = this.#options[option];
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(picked) as unknown as Partial<Record<K, never>>;
  }
}

/** Reads an option with the shape of what it sets. Commander adds the name of the option to the error. */
export function reader<T>(shape: Shape<T>): (text: string) => T {
  return (text) => {
    const errors: string[] = [];
    const value = fromText(shape).read(inItsCase(text, shape.schema.enum), 'It', errors);
    if (errors.length === 0 && value !== undefined) return value;
    throw new InvalidArgumentError(`${errors.join('. ')}.`);
  };
}

/** Words like the names of statuses may be typed in any case. */
function inItsCase(text: string, choices: readonly unknown[] = []): unknown {
  return choices.find((choice) => String(choice).toLowerCase() === text.toLowerCase()) ?? text;
}

/** How often a display is refreshed. Each refresh reads the database. */
export const interval = reader(duration({ min: 250 }));

/** JSON, `@file` for the JSON in a file, or `@-` for JSON on standard input. */
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

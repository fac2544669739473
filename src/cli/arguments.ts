import { readFileSync } from 'node:fs';
import { InvalidArgumentError, Option } from 'commander';
import { ChronosError } from '../domain/errors.js';
import { duration, fromText, type Shape } from '../domain/validation.js';

/** The positional arguments of a command, and its options by their names in camelCase. */
export class Arguments {
  readonly positionals: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(positionals: readonly string[], options: Readonly<Record<string, unknown>>) {
    this.positionals = positionals;
    this.#options = options;
  }

  /** Empty only if the command has no required argument: commander has checked that. */
  get first(): string {
    return this.positionals[0] ?? '';
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
   * The options that are set. The values are typed `never`, which is assignable to every option of the Scheduler; its
   * methods validate them.
   */
  pick<K extends string>(...names: readonly K[]): Partial<Record<K, never>> {
    return this.pickAs(Object.fromEntries<string>(names.map((name) => [name, name])) as Record<K, string>);
  }

  /** The same, renamed to the keys of `names`. */
  pickAs<K extends string>(names: Readonly<Record<K, string>>): Partial<Record<K, never>> {
    const picked = Object.entries<string>(names)
      .map(([name, option]) => [name, this.#options[option]] as const)
      .filter(([, value]) => value !== undefined);
    return Object.fromEntries(picked) as Partial<Record<K, never>>;
  }
}

export function invalidArgument(message: string): ChronosError {
  return new ChronosError('INVALID_ARGUMENT', message);
}

type ParseText = (text: string) => unknown;

/**
 * An option, with the shape of its value or a function that parses it (default: any text). Commander adds the flags to
 * the InvalidArgumentError of an invalid value.
 */
export function option(flags: string, help: string, value?: Shape<unknown> | ParseText): Option {
  const added = new Option(flags, help);
  if (value === undefined) return added;
  return added.argParser(typeof value === 'function' ? value : (text) => parseShape(value, text));
}

function parseShape(shape: Shape<unknown>, text: string): unknown {
  const errors: string[] = [];
  const value = fromText(shape).read(matchCase(text, shape.schema.enum), 'It', errors);
  if (errors.length === 0 && value !== undefined) return value;
  // An entry of a list is named by its position.
  const messages = errors.map((error) => error.replace(/^It\[(\d+)\]/, (_, i) => `Value ${Number(i) + 1}`));
  throw new InvalidArgumentError(`${messages.join('. ')}.`);
}

/** Values of an enum, such as statuses, may be typed in any case. */
function matchCase(text: string, choices: readonly unknown[] = []): unknown {
  return choices.find((choice) => String(choice).toLowerCase() === text.toLowerCase()) ?? text;
}

/** How often a display is refreshed. Each refresh reads the database. */
export const interval = duration({ min: 250 });

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

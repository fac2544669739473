/** What was given on the command line: its words, and its options by their names in camelCase. */
export class Given {
  readonly words: readonly string[];
  readonly #options: Readonly<Record<string, unknown>>;

  constructor(words: readonly string[], options: Readonly<Record<string, unknown>>) {
    this.words = words;
    this.#options = options;
  }

  /** The first word; commander has seen to it that a command has those it needs. */
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

  /** As it was read; undefined when it was not given. */
  value(name: string): unknown {
    return this.#options[name];
  }

  /** Those of the options that were given, under the names that a method of the Scheduler has for them, which checks them. */
  picked<K extends string>(names: Readonly<Record<K, string>>): Partial<Record<K, never>> {
    const given = Object.entries<string>(names).flatMap(([name, option]) => {
      const value = this.#options[option];
      return value === undefined ? [] : [[name, value] as const];
    });
    return Object.fromEntries(given) as unknown as Partial<Record<K, never>>;
  }
}

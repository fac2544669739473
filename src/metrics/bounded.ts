const OTHER = 'other';

/**
 * One thing for each name that is known, and one for all the rest: what others store must not decide how many time
 * series there are.
 */
export class Bounded<T> {
  readonly #made = new Map<string, T>();
  readonly #make: (name: string) => T;
  readonly #known: () => readonly string[];

  constructor(known: () => readonly string[], make: (name: string) => T) {
    this.#known = known;
    this.#make = make;
  }

  get(name: string): T {
    return this.#made.get(name) ?? this.#first(this.#known().includes(name) ? name : OTHER);
  }

  #first(name: string): T {
    const made = this.#made.get(name) ?? this.#make(name);
    this.#made.set(name, made);
    return made;
  }
}

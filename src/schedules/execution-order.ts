import { ChronosError } from '../domain/errors.js';
import { hint } from '../domain/nearest.js';

interface Dependent {
  readonly name: string;
  readonly dependsOn: readonly string[];
}

/** Each after everything it depends on; otherwise in the order given. */
export function executionOrder<T extends Dependent>(definitions: readonly T[]): T[] {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const ordered = new Set<T>();

  function visit(definition: T, path: readonly string[]): void {
    if (ordered.has(definition)) return;
    if (path.includes(definition.name)) {
      const cycle = [...path.slice(path.indexOf(definition.name)), definition.name];
      throw new ChronosError(
        'DEPENDENCY_CYCLE',
        `schedules depend on each other in a circle: ${cycle.join(' → ')}`,
      );
    }
    for (const name of definition.dependsOn) {
      const dependency = byName.get(name);
      if (dependency === undefined) {
        throw new ChronosError(
          'DEPENDENCY_UNKNOWN',
          `schedule '${definition.name}' depends on '${name}', which is not defined${hint(name, [...byName.keys()])}`,
        );
      }
      visit(dependency, [...path, definition.name]);
    }
    ordered.add(definition);
  }

  for (const definition of definitions) visit(definition, []);
  return [...ordered];
}

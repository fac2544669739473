// The only variables that the library reads. All others are read by the worker process, in environment.ts.

export type Environment = Readonly<Record<string, string | undefined>>;

/** Enough to find programs and choose a language, and no secret of the worker. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

export function currentEnvironment(): string {
  const { NODE_ENV: environment = '' } = process.env;
  return environment === '' ? 'development' : environment;
}

/** The variables that a `shell` job inherits. `more`: names that the operator adds. */
export function inheritedEnvironment(
  more: readonly string[],
  environment: Environment = process.env,
): Record<string, string> {
  return Object.fromEntries(
    [...INHERITED, ...more].flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

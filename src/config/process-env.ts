// The only variables that the library reads. All others are read by the worker process, in environment.ts.

export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that a `shell` job inherits: enough to find programs and choose a language, and no secret of the worker. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

export function currentEnvironment(): string {
  const { NODE_ENV: environment = '' } = process.env;
  return environment === '' ? 'development' : environment;
}

export function inheritedEnvironment(environment: Environment = process.env): Record<string, string> {
  return Object.fromEntries(
    INHERITED.flatMap((name) => {
      const value = environment[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

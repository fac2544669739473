// What a library may know of the process it runs in. Everything else of the environment is read by the worker process.

/** What a child process may inherit: where programs are and how to speak, never the worker's secrets. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

export function currentEnvironment(): string {
  const { NODE_ENV: environment = '' } = process.env;
  return environment === '' ? 'development' : environment;
}

export function inheritedEnvironment(): Record<string, string> {
  return Object.fromEntries(
    INHERITED.flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

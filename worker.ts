import dotenv from 'dotenv';
import { readEnvironment } from './src/config/environment.js';
import { ChronosError } from './src/index.js';
import { exitCodeOf } from './src/process/exit.js';
import { explained } from './src/process/explained.js';
import { createLogger } from './src/process/logger.js';
import { daemon, openWorker, run, work } from './src/process/worker-process.js';
import { exitSoon } from './src/runtime/exit-soon.js';

/** What the process does, as its first argument: work until it is stopped, one pass, or a pass at every tick. */
const MODES = { work, run, daemon } as const;

async function main(): Promise<number> {
  dotenv.config({ quiet: true });
  const settings = readEnvironment(process.env);
  const mode = readMode(process.argv[2]);
  const log = createLogger(settings);
  const scheduler = await openWorker(settings, log);
  return MODES[mode](scheduler, settings, log);
}

function readMode(argument: string | undefined): keyof typeof MODES {
  const mode = argument ?? 'work';
  if (Object.hasOwn(MODES, mode)) return mode as keyof typeof MODES;
  throw new ChronosError(
    'INVALID_ENVIRONMENT',
    `the first argument is one of ${Object.keys(MODES).join(', ')} (work when left out), got '${mode}'`,
  );
}

main().then(exitSoon, async (error: unknown) => {
  console.error(explained(error).join('\n'));
  exitSoon(await exitCodeOf(error));
});

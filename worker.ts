import dotenv from 'dotenv';
import { readEnvironment } from './src/config/environment.js';
import { ChronosError } from './src/index.js';
import { exitCodeOf, exitAfterGrace, formatError } from './src/process/exit.js';
import { createLogger } from './src/process/logger.js';
import { daemon, openWorker, run, work } from './src/process/worker-process.js';

/** The first argument: `work` until stopped, `run` one pass, or `daemon`: a pass at every tick. */
const MODES = { work, run, daemon } as const;

async function main(): Promise<number> {
  dotenv.config({ quiet: true });
  const settings = readEnvironment(process.env);
  const mode = parseMode(process.argv[2]);
  const log = createLogger(settings);
  const scheduler = await openWorker(settings, log);
  return MODES[mode](scheduler, settings, log);
}

function parseMode(argument: string | undefined): keyof typeof MODES {
  const mode = argument ?? 'work';
  if (Object.hasOwn(MODES, mode)) return mode as keyof typeof MODES;
  throw new ChronosError(
    'INVALID_ENVIRONMENT',
    `the first argument must be one of ${Object.keys(MODES).join(', ')} (default: work), got '${mode}'`,
  );
}

main().then(exitAfterGrace, async (error: unknown) => {
  console.error(formatError(error).join('\n'));
  exitAfterGrace(await exitCodeOf(error));
});

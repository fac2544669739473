import { spawn, type ChildProcess } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../domain/clock.js';
import { ChronosError } from '../../domain/errors.js';
import { Changes } from '../changes.js';
import type { CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { styled } from '../styled.js';
import { supervise } from '../supervisor.js';
import { WORK_OPTIONS } from './work.js';

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

export const dev: CommandSpec = {
  name: 'dev',
  summary: 'Work, and start again whenever a source in the folder of the handlers changes',
  options: [...WORK_OPTIONS, { flags: '--watch <folder>', help: 'another folder to watch instead' }],
  examples: ['dev --handlers ./my-handlers.js', 'dev --handlers dist/handlers.js --watch dist'],
  run: develop,
};

async function develop(context: Context): Promise<number> {
  const { given, clock, signal, err } = context;
  const { handlers } = context.settings();
  if (handlers === undefined)
    throw new ChronosError(
      'INVALID_ENVIRONMENT',
      'dev needs a module to watch: name it with --handlers or HANDLERS',
    );
  const changes = watched(resolve(given.text('watch') ?? dirname(handlers)), clock);
  try {
    return await supervise({
      signal,
      changes,
      start: () => startWorker(context, handlers),
      say: (sentence) => err.lines(styled('cyan', sentence)),
    });
  } finally {
    changes.close();
  }
}

function watched(folder: string, clock: Clock): Changes {
  try {
    return new Changes(folder, clock);
  } catch (error) {
    throw new ChronosError('INVALID_ARGUMENT', `${folder} cannot be watched: ${(error as Error).message}`);
  }
}

function startWorker({ given }: Context, handlers: string): ChildProcess {
  const words = Object.entries({
    '--queues': given.list('queues')?.join(','),
    '--concurrency': given.number('concurrency')?.toString(),
    '--uri-file': given.text('uriFile'),
  }).flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  const json = given.flag('json') ? ['--json'] : [];
  return spawn(
    process.execPath,
    [...process.execArgv, MAIN, 'work', '--handlers', handlers, ...words, ...json],
    {
      stdio: 'inherit',
    },
  );
}

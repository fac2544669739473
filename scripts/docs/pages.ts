import { readFile } from 'node:fs/promises';
import { apiReference } from './api.js';
import { commandSections, exitCodeTable } from './commands.js';
import { metricTable } from './metrics.js';
import { routeTable } from './routes.js';
import { fill, frequencyTable, optionTable, stateTable, transitionTable } from './tables.js';

const ROOT = new URL('../../', import.meta.url);

export interface Page {
  path: URL;
  current: string;
  /** With its generated parts up to date. */
  expected: string;
}

export async function generatePages(): Promise<Page[]> {
  return Promise.all(
    Object.entries(await generateParts()).map(async ([path, parts]) => {
      const current = await read(path);
      const expected = Object.entries(parts).reduce(
        (page, [name, content]) => fill(page, name, content),
        current,
      );
      return { path: new URL(path, ROOT), current, expected };
    }),
  );
}

/** The generated parts of each page, by the names of their markers. */
async function generateParts(): Promise<Record<string, Record<string, string>>> {
  const options = await read('src/config/options.ts');
  const handlerOptions = await read('src/config/handler-options.ts');
  return {
    'docs/api.md': { reference: apiReference() },
    'docs/cli.md': { 'exit codes': exitCodeTable(), commands: commandSections() },
    'docs/events.md': {
      events: optionTable(await read('src/domain/events.ts'), 'SchedulerEvents', 'event'),
      measurements: optionTable(await read('src/runtime/measurements.ts'), 'Measurements', 'measurement'),
    },
    'docs/http-api.md': {
      options: optionTable(await read('src/config/http-options.ts'), 'HttpOptions'),
      routes: routeTable(),
    },
    'docs/lifecycle.md': { states: stateTable(), transitions: transitionTable() },
    'docs/metrics.md': {
      options: optionTable(await read('src/metrics/attach.ts'), 'MetricsOptions'),
      metrics: await metricTable(),
    },
    'docs/options.md': {
      scheduler: optionTable(options, 'AllSchedulerOptions'),
      'queue settings': optionTable(options, 'QueueSettings'),
      retries: optionTable(handlerOptions, 'RetryOptions'),
      'retry functions': optionTable(await read('src/domain/job/backoff.ts'), 'RetryFunctions'),
      retention: optionTable(handlerOptions, 'RetentionOptions'),
      handler: optionTable(handlerOptions, 'HandlerOptions'),
      dispatch: optionTable(await read('src/config/dispatch-options.ts'), 'DispatchOptions'),
    },
    'docs/schedules.md': {
      frequencies: frequencyTable(),
      schedule: optionTable(await read('src/config/schedule-options.ts'), 'ScheduleOptions'),
    },
  };
}

async function read(path: string): Promise<string> {
  return readFile(new URL(path, ROOT), 'utf8');
}

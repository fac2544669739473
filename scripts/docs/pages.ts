import { readFile } from 'node:fs/promises';
import { commandSections, exitCodeTable } from './commands.js';
import { metricTable } from './metrics.js';
import { routeTable } from './routes.js';
import { fill, frequencyTable, optionTable, transitionTable } from './tables.js';

const ROOT = new URL('../../', import.meta.url);

async function read(path: string): Promise<string> {
  return readFile(new URL(path, ROOT), 'utf8');
}

/** Each page with its generated parts up to date. */
export async function generatePages(): Promise<{ path: URL; current: string; expected: string }[]> {
  const options = await read('src/config/options.ts');
  const lifecycle = await read('docs/lifecycle.md');
  const reference = await read('docs/options.md');
  const schedules = await read('docs/schedules.md');
  const scheduleOptions = await read('src/config/schedule-options.ts');
  const eventsPage = await read('docs/events.md');
  const commandPage = await read('docs/cli.md');
  const metricsPage = await read('docs/metrics.md');
  const httpPage = await read('docs/http-api.md');
  const events = optionTable(await read('src/domain/events.ts'), 'SchedulerEvents', 'event');
  const tables = {
    scheduler: optionTable(options, 'SchedulerOptions'),
    retries: optionTable(await read('src/config/handler-options.ts'), 'RetryOptions'),
    retention: optionTable(options, 'RetentionOptions'),
    handler: optionTable(await read('src/config/handler-options.ts'), 'HandlerOptions'),
    dispatch: optionTable(await read('src/config/dispatch-options.ts'), 'DispatchOptions'),
  };
  const filled = Object.entries(tables).reduce((page, [name, table]) => fill(page, name, table), reference);
  return [
    {
      path: new URL('docs/lifecycle.md', ROOT),
      current: lifecycle,
      expected: fill(lifecycle, 'transitions', transitionTable()),
    },
    {
      path: new URL('docs/cli.md', ROOT),
      current: commandPage,
      expected: fill(fill(commandPage, 'exit codes', exitCodeTable()), 'commands', commandSections()),
    },
    { path: new URL('docs/options.md', ROOT), current: reference, expected: filled },
    {
      path: new URL('docs/schedules.md', ROOT),
      current: schedules,
      expected: fill(
        fill(schedules, 'frequencies', frequencyTable()),
        'schedule',
        optionTable(scheduleOptions, 'ScheduleOptions'),
      ),
    },
    {
      path: new URL('docs/events.md', ROOT),
      current: eventsPage,
      expected: fill(eventsPage, 'events', events),
    },
    {
      path: new URL('docs/metrics.md', ROOT),
      current: metricsPage,
      expected: fill(
        fill(metricsPage, 'metrics', await metricTable()),
        'options',
        optionTable(await read('src/metrics/attach.ts'), 'MetricsOptions'),
      ),
    },
    {
      path: new URL('docs/http-api.md', ROOT),
      current: httpPage,
      expected: fill(
        fill(httpPage, 'routes', routeTable()),
        'options',
        optionTable(await read('src/config/http-options.ts'), 'HttpOptions'),
      ),
    },
  ];
}

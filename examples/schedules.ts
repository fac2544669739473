import { setTimeout as pause } from 'node:timers/promises';
import type { JobContext, Scheduler } from '../src/index.js';
import * as handlers from './handlers.js';

// A module for HANDLERS whose default export receives the scheduler: it registers the handlers of handlers.ts, and
// defines schedules. In your own project, import from 'chronos-worker' instead.

export default function register(scheduler: Scheduler): void {
  for (const [taskType, handler] of Object.entries(handlers)) scheduler.registerHandler(taskType, handler);

  // Every ten seconds. Runs never overlap: an occurrence is skipped while the previous run is active.
  scheduler.schedule('heartbeat', beat).everyTenSeconds().maxRunningTime('30s');

  // Filters and hooks, in the business hours of a time zone, whatever the zone of this machine.
  scheduler
    .schedule('sync-orders', syncOrders)
    .everyFiveMinutes()
    .between('09:00', '17:55')
    .weekdays()
    .timezone('Europe/Berlin')
    .args({ batch: 100 })
    .when(() => process.env['MAINTENANCE'] === undefined)
    .before((args: { batch: number }, job) => {
      job.log(`syncing ${args.batch} orders`);
    })
    .onError((error, _, job) => {
      job.log(`failed: ${error.message}`);
    });

  // A registered task type with a payload. A missed night runs later, up to 12:30.
  scheduler
    .define('generateReport', { name: 'nightly', pages: 3 })
    .named('nightly-report')
    .dailyAt('02:30')
    .queue('default')
    .maxRetries(2)
    .onMisfire('once', { within: '10h' });

  // Built-in handlers. Without queue(), a one-pass run (`node dist/worker.js run`) runs them inline, in this order.
  scheduler.registerCommand('app:extract', () => ({ rows: 42 }));
  scheduler.define('command', 'app:extract').named('extract').dailyAt('01:00');
  scheduler
    .define('shell', ['node', '--version'])
    .named('transform')
    .dailyAt('01:00')
    .dependsOn('extract')
    .timeout('1m');
  scheduler.channel.on('loaded', (data) => ({ received: data }));
  scheduler
    .define('event', { event: 'loaded', data: { rows: 42 } })
    .named('load')
    .dailyAt('01:00')
    .dependsOn('transform');

  // Without a rule, it runs only when it is dispatched.
  scheduler.schedule('rebuild-index', rebuildIndex).priority(50).args({ deep: true });
}

function beat(_: unknown, job: JobContext): object {
  return { due: job.scheduledFor, started: job.attempt };
}

async function syncOrders(args: { batch: number }, job: JobContext): Promise<object> {
  await pause(100, undefined, { signal: job.signal });
  return { synced: args.batch };
}

function rebuildIndex(args: { deep: boolean }): object {
  return { rebuilt: args.deep ? 'everything' : 'the rest' };
}

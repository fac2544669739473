import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Scheduler } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { jobsOf } from '../../../support/schedules.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const MINUTE = 60_000;

describe('definitions', () => {
  const database = useSharedDatabase();

  describe('handler', () => {
    it('can be the name of a task type, with the schema, timeout and retries of its registration [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      const received: unknown[] = [];
      scheduler.registerHandler('report', (payload) => received.push(payload), {
        schema: z.object({ month: z.string().transform(Number), copies: z.number().default(1) }),
        retries: { max: 1 },
      });
      const { id } = await scheduler.schedule('monthly-report', 'report').args({ month: '5' }).dispatch();
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
      assert.deepEqual(received, [{ month: 5, copies: 1 }]);
    });

    it('can be a class with a static handle, a class with an instance handle, or an object [J6]', async () => {
      class Static {
        static handle(payload: unknown): unknown {
          return ['static', payload];
        }
      }
      class Instance {
        handle(payload: unknown): unknown {
          return ['instance', payload];
        }
      }
      const { scheduler } = manualScheduler(database);
      const handles = [
        await scheduler.schedule('a', Static).args(1).dispatch(),
        await scheduler.schedule('b', Instance).args(2).dispatch(),
        await scheduler
          .schedule('c', { handle: (payload: unknown) => ['object', payload] })
          .args(3)
          .dispatch(),
        await scheduler.define(Static, 4).named('d').dispatch(),
      ];
      await scheduler.run();
      const results = await Promise.all(handles.map(async ({ id }) => (await scheduler.getJob(id))?.result));
      assert.deepEqual(results, [
        ['static', 1],
        ['instance', 2],
        ['object', 3],
        ['static', 4],
      ]);
    });

    it('must be registered in a worker that creates and runs its jobs: other workers ignore the schedule [J18]', async () => {
      const { scheduler: without, clock } = manualScheduler(database);
      const withDefinition = database.scheduler({ clock, lockTimeout: '1d' });
      withDefinition.schedule('send-emails', () => 'sent').everyFiveMinutes();
      without.schedule('other', () => 1).daily();
      await withDefinition.run();
      clock.advance(5 * MINUTE);
      assert.equal(await without.run(), 0);
      assert.equal(
        (await jobsOf(database, 'send-emails')).length,
        0,
        'a worker without the definition creates no job',
      );
      assert.equal(await withDefinition.run(), 1);
    });
  });

  describe('environments', () => {
    it('limit where a definition runs [D8]', async () => {
      const ran: string[] = [];
      const { clock } = manualScheduler(database);
      const worker = (environment: string): Scheduler => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', environment });
        scheduler
          .schedule('report', () => ran.push(`report in ${environment}`))
          .everyMinute()
          .environments('production');
        scheduler
          .schedule('debug', () => ran.push(`debug in ${environment}`))
          .everyMinute()
          .environments(['development', 'testing']);
        scheduler
          .schedule('both', () => ran.push(`both in ${environment}`))
          .everyMinute()
          .environments();
        return scheduler;
      };
      const [server, laptop] = [worker('production'), worker('development')];
      await server.run();
      await laptop.run();
      clock.advance(MINUTE);
      await server.run();
      await laptop.run();
      assert.deepEqual(ran.sort(), ['both in production', 'debug in development', 'report in production']);
    });

    it('are compared with NODE_ENV unless the option environment is set [D8]', async () => {
      const define = (scheduler: Scheduler): Scheduler => {
        scheduler.schedule('work', () => 'done').environments(process.env['NODE_ENV'] ?? 'development');
        return scheduler;
      };
      const elsewhere = define(manualScheduler(database, { environment: 'elsewhere' }).scheduler);
      const here = define(manualScheduler(database).scheduler);
      await elsewhere.dispatch('work');
      assert.equal(await elsewhere.run(), 0);
      assert.equal(await here.run(), 1);
    });

    it('also apply when the handler was registered separately [D8]', async () => {
      const { clock } = manualScheduler(database);
      const ran: string[] = [];
      const worker = (environment: string): Scheduler => {
        const scheduler = database.scheduler({ clock, lockTimeout: '1d', environment, concurrency: 1 });
        scheduler.registerHandler('report', () => ran.push(environment));
        scheduler.schedule('report').everyMinute().environments('production');
        return scheduler;
      };
      const [server, laptop] = [worker('production'), worker('development')];
      await server.run();
      await laptop.run();
      clock.advance(MINUTE);
      // The server enqueues the job, and the laptop polls first.
      await server.triggerSchedule('report');
      await laptop.run();
      assert.deepEqual(ran, []);
      await server.run();
      assert.deepEqual(ran.at(0), 'production');
    });
  });
});

import assert from 'node:assert/strict';
import { z } from 'zod';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { recordEvents } from '../../support/events.js';

const schema = z.object({
  to: z.email(),
  count: z.number().int().default(1),
  when: z.string().transform((text) => new Date(text)),
});

describe('payload schemas', () => {
  const database = useSharedDatabase();

  it('reject an invalid payload at dispatch and name every problem', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('mail', () => undefined, { schema });
    await assert.rejects(scheduler.dispatch('mail', { to: 'nobody', count: 1.5 }), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'INVALID_PAYLOAD');
      for (const path of ['payload.to:', 'payload.count:', 'payload.when:'])
        assert.ok(error.message.includes(path), `${path} in ${error.message}`);
      return true;
    });
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('transform the payload for the handler; the dispatched payload is stored', async () => {
    const { scheduler } = manualScheduler(database);
    const received: unknown[] = [];
    scheduler.registerHandler(
      'mail',
      (payload, job) => {
        received.push(payload, job.payload);
      },
      { schema },
    );
    const input = { to: 'ada@example.org', when: '2026-01-01T00:00:00Z' };
    const { id } = await scheduler.dispatch('mail', input);
    assert.deepEqual((await scheduler.getJob(id))?.payload, input);
    await scheduler.run();
    assert.deepEqual(received, [{ ...input, count: 1, when: new Date(input.when) }, input]);
    assert.deepEqual((await scheduler.getJob(id))?.payload, input);
  });

  it('fail a job with an invalid stored payload without running or retrying it', async () => {
    const { scheduler: dispatcher } = manualScheduler(database);
    const { id } = await dispatcher.dispatch('mail', { to: 'nobody' });
    const { scheduler } = manualScheduler(database);
    const events = recordEvents(scheduler, 'job:complete', 'job:failed');
    scheduler.registerHandler('mail', () => assert.fail('the payload is invalid'), { schema });
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'INVALID_PAYLOAD']);
    assert.match(job!.error!.message, /payload\.to:.*payload\.when:/s);
    assert.deepEqual(
      events.map(({ name, event }) => [name, (event as { willRetry?: boolean }).willRetry]),
      [['job:failed', false]],
    );
  });

  it('can be asynchronous', async () => {
    const { scheduler } = manualScheduler(database);
    const even = z.number().refine(async (value) => value % 2 === 0, 'must be even');
    scheduler.registerHandler('halve', (payload: number) => payload / 2, { schema: even });
    await assert.rejects(scheduler.dispatch('halve', 3), { message: /must be even/ });
    const { id } = await scheduler.dispatch('halve', 4);
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.result, 2);
  });

  it('that throw reject the dispatch and fail the attempt of a stored job', async () => {
    const broken = z.any().refine(() => {
      throw new Error('the schema is broken');
    });
    const { scheduler: dispatcher } = manualScheduler(database);
    const { id } = await dispatcher.dispatch('work');
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('work', () => undefined, { schema: broken });
    await assert.rejects(scheduler.dispatch('work'), /the schema is broken/);
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['SCHEDULED', 1]);
  });

  it('that are not schemas are rejected', () => {
    const { scheduler } = manualScheduler(database);
    for (const bad of [{}, 'object', { '~standard': 1 }, null])
      assert.throws(() => scheduler.registerHandler('mail', () => 1, { schema: bad as never }), {
        code: 'INVALID_OPTIONS',
      });
  });
});

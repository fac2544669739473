import assert from 'node:assert/strict';
import { z } from 'zod';
import { byHand } from '../support/by-hand.js';
import { useSharedDatabase } from '../support/shared-database.js';
import { recordEvents } from '../support/events.js';

const schema = z.object({
  to: z.email(),
  count: z.number().int().default(1),
  when: z.string().transform((text) => new Date(text)),
});

describe('payload schemas', () => {
  const database = useSharedDatabase();

  it('a bad payload is refused at dispatch, with every fault named', async () => {
    const { scheduler } = byHand(database);
    scheduler.registerHandler('mail', () => undefined, { schema });
    await assert.rejects(scheduler.dispatch('mail', { to: 'nobody', count: 1.5 }), (error: Error) => {
      assert.equal((error as { code?: string }).code, 'INVALID_PAYLOAD');
      for (const path of ['payload.to:', 'payload.count:', 'payload.when:'])
        assert.ok(error.message.includes(path), `${path} in ${error.message}`);
      return true;
    });
    assert.equal(await database.collections.jobs.countDocuments(), 0);
  });

  it('the handler gets what the schema makes of the payload; stored is what was dispatched', async () => {
    const { scheduler } = byHand(database);
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

  it('a stored payload that does not fit fails the job without running or retrying it', async () => {
    const { scheduler: dispatcher } = byHand(database);
    const { id } = await dispatcher.dispatch('mail', { to: 'nobody' });
    const { scheduler } = byHand(database);
    const events = recordEvents(scheduler, 'job:complete', 'job:failed');
    scheduler.registerHandler('mail', () => assert.fail('its payload is wrong'), { schema });
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.error?.code], ['FAILED', 'INVALID_PAYLOAD']);
    assert.match(job!.error!.message, /payload\.to:.*payload\.when:/s);
    assert.deepEqual(
      events.map(({ name, event }) => [name, (event as { willRetry?: boolean }).willRetry]),
      [['job:failed', false]],
    );
  });

  it('may be asynchronous', async () => {
    const { scheduler } = byHand(database);
    const even = z.number().refine(async (value) => value % 2 === 0, 'must be even');
    scheduler.registerHandler('halve', (payload: number) => payload / 2, { schema: even });
    await assert.rejects(scheduler.dispatch('halve', 3), { message: /must be even/ });
    const { id } = await scheduler.dispatch('halve', 4);
    await scheduler.run();
    assert.equal((await scheduler.getJob(id))?.result, 2);
  });

  it('one that itself breaks refuses the dispatch, and fails the attempt of a stored job', async () => {
    const broken = z.any().refine(() => {
      throw new Error('the schema is broken');
    });
    const { scheduler: dispatcher } = byHand(database);
    const { id } = await dispatcher.dispatch('work');
    const { scheduler } = byHand(database);
    scheduler.registerHandler('work', () => undefined, { schema: broken });
    await assert.rejects(scheduler.dispatch('work'), /the schema is broken/);
    await scheduler.run();
    const job = await scheduler.getJob(id);
    assert.deepEqual([job?.status, job?.attempts], ['SCHEDULED', 1]);
  });

  it('something that is no schema is refused', () => {
    const { scheduler } = byHand(database);
    for (const bad of [{}, 'object', { '~standard': 1 }, null])
      assert.throws(() => scheduler.registerHandler('mail', () => 1, { schema: bad as never }), {
        code: 'INVALID_OPTIONS',
      });
  });
});

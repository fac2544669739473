import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mongo } from 'mongoose';
import { useDatabase } from '../../support/database.js';
import { nextEvent } from '../../support/events.js';
import { withoutRenewalThread } from '../../support/manual-scheduler.js';

const PAGE = readFileSync(new URL('../../../docs/wire.md', import.meta.url), 'utf8');

/** The document in docs/wire.md, due now. */
function smallestJob(): mongo.Document {
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(PAGE) ?? [];
  const document = mongo.BSON.EJSON.parse(json) as mongo.Document;
  return { ...document, nextRunAt: new Date() };
}

function tableFields(heading: string): string[] {
  const section = PAGE.slice(PAGE.indexOf(`## ${heading}`)).split('\n## ')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name ?? ''),
  );
}

describe('jobs in the database', () => {
  const database = useDatabase();

  it('runs the smallest document of docs/wire.md, whose id is an ObjectId', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread });
    const received: unknown[] = [];
    scheduler.registerHandler('sendEmail', (payload, job) => {
      received.push(payload, job.id);
      return 'sent';
    });
    await scheduler.start();
    const complete = nextEvent(scheduler, 'job:complete');
    const { insertedId } = await database.connection.collection('chronos_jobs').insertOne(smallestJob());
    const id = insertedId.toHexString();
    assert.equal((await complete).jobId, id);
    assert.deepEqual(received, [null, id]);
    const job = await scheduler.job(id).get();
    assert.deepEqual([job?.status, job?.result, job?.fence, job?.invalid], ['COMPLETED', 'sent', 1, null]);
    assert.deepEqual(
      (await scheduler.getExecutions(id)).map((one) => one.id),
      [`${id}:1`],
    );
    assert.equal((await scheduler.operations.explainJob(id))?.check, 'finished');
    assert.equal((await scheduler.operations.listJobs({ idPrefix: id.slice(0, 10) })).items.length, 1);
  });

  it('cancels, holds, retries and deletes a job with an ObjectId by its hex digits', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread });
    const jobs = database.connection.collection('chronos_jobs');
    const { insertedId } = await jobs.insertOne(smallestJob());
    const handle = scheduler.job(insertedId.toHexString());
    assert.deepEqual(await handle.hold(), { result: 'changed', state: 'held' });
    assert.deepEqual(await handle.unhold(), { result: 'changed', state: 'waiting' });
    assert.equal((await handle.cancel()).result, 'changed');
    assert.equal((await handle.retry()).result, 'changed');
    assert.equal((await handle.cancel()).result, 'changed');
    assert.equal((await scheduler.delete(handle.id)).result, 'changed');
    assert.equal(await jobs.countDocuments(), 0);
  });

  it('pages through text ids and ObjectIds, each job once', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread });
    const jobs = database.connection.collection<{ _id: unknown }>('chronos_jobs');
    const nextRunAt = new Date(Date.now() + 60_000);
    const ids = Array.from({ length: 7 }, (_, index) =>
      index % 2 === 0 ? `text-${index}` : new mongo.ObjectId(),
    );
    await jobs.insertMany(ids.map((_id) => ({ ...smallestJob(), _id, nextRunAt })));
    for (const filter of [{}, { state: 'delayed' }] as const) {
      const seen: string[] = [];
      let after: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof scheduler.operations.listJobs>> =
          await scheduler.operations.listJobs({ ...filter, limit: 2, ...(after !== null && { after }) });
        seen.push(...page.items.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      assert.deepEqual(seen.toSorted(), ids.map(String).toSorted());
    }
  });

  it('stores no field that is null, and every stored field is in docs/wire.md', async () => {
    const scheduler = database.scheduler({ ...withoutRenewalThread });
    let attempts = 0;
    scheduler.registerHandler('work', async (_, job) => {
      await job.reportProgress(50, 'half');
      if (++attempts === 1) throw new Error('once');
    });
    const jobs = database.connection.collection('chronos_jobs');
    const { id } = await scheduler.dispatch('work', null, { retries: { max: 2, base: 0 } });
    const stored = await jobs.findOne();
    assert.ok(stored !== null);
    assert.deepEqual(Object.keys(stored).toSorted(), [
      ...['_id', 'createdAt', 'nextRunAt', 'nonce', 'priority', 'queue', 'retries', 'status', 'taskType'],
    ]);
    assert.ok(stored._id instanceof mongo.ObjectId && stored._id.toHexString() === id);
    await scheduler.start();
    assert.equal((await scheduler.job(id).wait()).status, 'COMPLETED');
    const documented = new Set([...tableFields('Fields'), ...tableFields('What workers write')]);
    for (const document of [stored, await jobs.findOne()]) {
      for (const [field, value] of Object.entries(document ?? {})) {
        assert.notEqual(value, null, field);
        assert.ok(documented.has(field), `docs/wire.md lacks ${field}`);
      }
    }
    for (const row of await database.connection.collection('chronos_executions').find().toArray())
      assert.ok(!Object.values(row).includes(null), JSON.stringify(row));
  });
});

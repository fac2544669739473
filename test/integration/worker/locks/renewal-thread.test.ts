import assert from 'node:assert/strict';
import { AnchoredClock } from '../../../../src/runtime/database-clock.js';
import { spawnSync } from 'node:child_process';
import { monotonic } from '../../../../src/runtime/system-clock.js';
import { SLOTS } from '../../../../src/worker/locks/lease-table.js';
import type { TrackedLease, RenewalReport } from '../../../../src/worker/locks/lock-renewer.js';
import { ThreadedRenewer } from '../../../../src/worker/locks/threaded-renewer.js';
import { aJob } from '../../../support/factories/job.js';
import { signal } from '../../../support/events.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const LENGTH = 60_000;

/** Ends when the lock of the job `a` was renewed. */
const SEEN_RENEWED = `
  import mongoose from 'mongoose';
  const connection = await mongoose.createConnection(process.env.URI).asPromise();
  const jobs = connection.collection('jobs');
  while ((await jobs.findOne({ _id: 'a' })).lockedUntil.getTime() === 0);
  await connection.destroy();
`;

describe('the renewal thread', () => {
  const database = useSharedDatabase();
  let renewer: ThreadedRenewer;

  beforeEach(() => {
    const options = { uri: database.uri, lockTimeout: LENGTH, connectTimeout: 5000 };
    renewer = new ThreadedRenewer(new AnchoredClock(), options);
  });

  afterEach(() => renewer.stop());

  function reportTo(report: Partial<RenewalReport>): RenewalReport {
    const unexpected = (what: string) => (): never => assert.fail(what);
    return {
      renewed: unexpected('renewed'),
      lost: unexpected('lost'),
      error: (error) => assert.fail(error),
      recovered: unexpected('recovered'),
      ...report,
    };
  }

  /** A lease of a running job whose renewal is overdue. */
  async function locked(id: string): Promise<TrackedLease> {
    const lockedUntil = new Date(0);
    await database.collections.jobs.insertOne(
      aJob({ status: 'RUNNING', _id: id, lockToken: 'token', lockedUntil }),
    );
    const renewedAt = monotonic() - LENGTH / 2;
    const times = { length: LENGTH, renewedAt, renewUntil: Infinity, prefetched: false };
    return { kind: 'job', id, token: 'token', ...times };
  }

  const lockOf = async (id: string): Promise<number> =>
    (await database.collections.jobs.findOne({ _id: id }))?.lockedUntil?.getTime() ?? 0;

  it('connects and renews locks while the main thread is blocked [C8]', async () => {
    const renewed = signal<readonly TrackedLease[]>();
    await renewer.start(reportTo({ renewed: renewed.fire }));
    const lease = await locked('a');
    const shorter = await locked('b');
    shorter.length = LENGTH - 1;
    renewer.track([lease, shorter]);
    // Until another process has seen it renewed, nothing runs in this thread.
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', SEEN_RENEWED], {
      env: { ...process.env, URI: database.uri },
      timeout: 20_000,
    });
    assert.equal(status, 0, String(stderr));
    assert.deepEqual(await renewed.promise, [lease, shorter]);
  });

  it('renews more leases than one table holds, and later leases in freed slots [C8]', async () => {
    const seen = new Set<string>();
    const all = signal();
    const done = (leases: readonly TrackedLease[]): void => {
      for (const { id } of leases) seen.add(id);
      if (seen.size === SLOTS + 50) all.fire();
    };
    await renewer.start(reportTo({ renewed: done, lost: () => assert.fail('none is lost') }));
    const leases = await Promise.all(
      Array.from({ length: SLOTS + 100 }, (_, index) => locked(`job ${index}`)),
    );
    renewer.track(leases.slice(0, SLOTS + 50));
    for (const lease of leases.slice(0, 50)) renewer.untrack(lease);
    // Shorter than any before, and the last one: all are looked at then.
    for (const lease of leases.slice(-1)) lease.length = LENGTH - 1;
    renewer.track(leases.slice(SLOTS + 50));
    await all.promise;
    assert.equal(await lockOf('job 0'), 0, 'dropped before anybody looked');
    assert.ok((await lockOf(`job ${SLOTS + 99}`)) > 0);
  });

  it('reports a lock that another worker has, not the lease that uses its slot now [C8]', async () => {
    const lost = signal<readonly TrackedLease[]>();
    await renewer.start(reportTo({ lost: lost.fire, renewed: () => undefined }));
    const lease = { ...(await locked('a')), token: 'an older one', length: LENGTH - 1 };
    renewer.track([lease]);
    const gone = await lost.promise;
    assert.equal(gone.length, 1);
    assert.equal(gone[0], lease, 'the very lease that was given');
  });
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { monotonic } from '../../src/runtime/system-clock.js';
import { SLOTS } from '../../src/worker/lease-table.js';
import type { KeptLease, RenewalReport } from '../../src/worker/renewer.js';
import { ThreadRenewer } from '../../src/worker/thread-renewer.js';
import { aJob } from '../support/a-job.js';
import { signal } from '../support/events.js';
import { useSharedDatabase } from '../support/shared-database.js';

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
  let renewer: ThreadRenewer;

  beforeEach(() => {
    renewer = new ThreadRenewer({ uri: database.uri, lockTimeout: LENGTH, connectTimeout: 5000 });
  });

  afterEach(() => renewer.stop());

  function reportTo(report: Partial<RenewalReport>): RenewalReport {
    const unexpected = (what: string) => (): never => assert.fail(what);
    return {
      renewed: unexpected('renewed'),
      lost: unexpected('lost'),
      trouble: (error) => assert.fail(error),
      recovered: unexpected('recovered'),
      ...report,
    };
  }

  /** A lease of a running job whose renewal is overdue. */
  async function locked(id: string): Promise<KeptLease> {
    const lockedUntil = new Date(0);
    await database.collections.jobs.insertOne(
      aJob({ status: 'RUNNING', _id: id, lockToken: 'token', lockedUntil }),
    );
    const renewedAt = monotonic() - LENGTH / 2;
    const times = { length: LENGTH, renewedAt, renewUntil: Infinity, buffered: false };
    return { kind: 'job', id, token: 'token', ...times };
  }

  const lockOf = async (id: string): Promise<number> =>
    (await database.collections.jobs.findOne({ _id: id }))?.lockedUntil?.getTime() ?? 0;

  it('C8 connects and renews although the main thread never comes to itself', async () => {
    const renewed = signal<readonly KeptLease[]>();
    await renewer.start(reportTo({ renewed: renewed.fire }));
    const lease = await locked('a');
    const shorter = await locked('b');
    shorter.length = LENGTH - 1;
    renewer.keep([lease, shorter]);
    // Until another process has seen it renewed, nothing runs in this thread.
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', SEEN_RENEWED], {
      env: { ...process.env, URI: database.uri },
      timeout: 20_000,
    });
    assert.equal(status, 0, String(stderr));
    assert.deepEqual(await renewed.promise, [lease, shorter]);
  });

  it('C8 keeps more leases than one table holds, and those that follow in freed slots', async () => {
    const seen = new Set<string>();
    const all = signal();
    const done = (leases: readonly KeptLease[]): void => {
      for (const { id } of leases) seen.add(id);
      if (seen.size === SLOTS + 50) all.fire();
    };
    await renewer.start(reportTo({ renewed: done, lost: () => assert.fail('none is lost') }));
    const leases = await Promise.all(
      Array.from({ length: SLOTS + 100 }, (_, index) => locked(`job ${index}`)),
    );
    renewer.keep(leases.slice(0, SLOTS + 50));
    for (const lease of leases.slice(0, 50)) renewer.drop(lease);
    // Shorter than any before, and the last one: all are looked at then.
    for (const lease of leases.slice(-1)) lease.length = LENGTH - 1;
    renewer.keep(leases.slice(SLOTS + 50));
    await all.promise;
    assert.equal(await lockOf('job 0'), 0, 'dropped before anybody looked');
    assert.ok((await lockOf(`job ${SLOTS + 99}`)) > 0);
  });

  it('C8 tells of a lock that is somebody else’s, and not of the one that has its slot now', async () => {
    const lost = signal<readonly KeptLease[]>();
    await renewer.start(reportTo({ lost: lost.fire, renewed: () => undefined }));
    const lease = { ...(await locked('a')), token: 'an older one', length: LENGTH - 1 };
    renewer.keep([lease]);
    const gone = await lost.promise;
    assert.equal(gone.length, 1);
    assert.equal(gone[0], lease, 'the very lease that was given');
  });
});

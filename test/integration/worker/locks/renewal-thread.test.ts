import assert from 'node:assert/strict';
import { DEFAULT_PREFIX } from '../../../../src/config/connection-options.js';
import { AnchoredClock } from '../../../../src/runtime/database-clock.js';
import { spawnSync } from 'node:child_process';
import { monotonic } from '../../../../src/runtime/system-clock.js';
import { SLOTS } from '../../../../src/worker/locks/lease-table.js';
import type { TrackedLease, RenewalReport } from '../../../../src/worker/locks/lock-renewer.js';
import { ThreadedRenewer } from '../../../../src/worker/locks/threaded-renewer.js';
import { isDenied } from '../../../../src/store/mongo-errors.js';
import { collectionName } from '../../../support/database.js';
import { aJob } from '../../../support/factories/job.js';
import { signal } from '../../../support/events.js';
import { withFailPoint } from '../../../support/fail-point.js';
import { useSharedDatabase } from '../../../support/shared-database.js';

const LENGTH = 60_000;

/** A program that exits when the lock of the job `a` was renewed. */
const WAIT_FOR_RENEWAL = `
  import mongoose from 'mongoose';
  const connection = await mongoose.createConnection(process.env.URI).asPromise();
  const jobs = connection.collection('${collectionName('jobs')}');
  while ((await jobs.findOne({ _id: 'a' })).lockedUntil.getTime() === 0);
  await connection.destroy();
`;

describe('the renewal thread', () => {
  const database = useSharedDatabase();
  let renewer: ThreadedRenewer;

  beforeEach(() => {
    const options = {
      source: { uri: database.uri, prefix: DEFAULT_PREFIX },
      lockTimeout: LENGTH,
      connectTimeout: 5000,
    };
    renewer = new ThreadedRenewer(new AnchoredClock(), options);
  });

  afterEach(() => renewer.stop(6000));

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

  /** Inserts a running job whose renewal is overdue, and returns its lease. */
  async function insertLocked(id: string): Promise<TrackedLease> {
    const lockedUntil = new Date(0);
    await database.collections.jobs.insertOne(
      aJob({ status: 'RUNNING', _id: id, lockToken: 'token', lockedUntil }),
    );
    const renewedAt = monotonic() - LENGTH / 2;
    const times = { length: LENGTH, renewedAt, renewUntil: Infinity, prefetched: false };
    return { kind: 'job', id, token: 'token', ...times };
  }

  const lockedUntil = async (id: string): Promise<number> =>
    (await database.collections.jobs.findOne({ _id: id }))?.lockedUntil?.getTime() ?? 0;

  it('connects and renews locks while the main thread is blocked [C8]', async () => {
    const renewed = signal<readonly TrackedLease[]>();
    await renewer.start(reportTo({ renewed: renewed.fire }));
    const lease = await insertLocked('a');
    const shorter = await insertLocked('b');
    shorter.length = LENGTH - 1;
    renewer.track([lease, shorter]);
    // This thread is blocked until another process has seen the renewal.
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', WAIT_FOR_RENEWAL], {
      env: { ...process.env, URI: database.uri },
      timeout: 60_000,
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
    await renewer.start(reportTo({ renewed: done }));
    const leases = await Promise.all(
      Array.from({ length: SLOTS + 100 }, (_, index) => insertLocked(`job ${index}`)),
    );
    renewer.track(leases.slice(0, SLOTS + 50));
    for (const lease of leases.slice(0, 50)) renewer.untrack(lease);
    // A lease shorter than all others makes the thread read the tables at once.
    leases.at(-1)!.length = LENGTH - 1;
    renewer.track(leases.slice(SLOTS + 50));
    await all.promise;
    assert.equal(await lockedUntil('job 0'), 0, 'untracked before the first renewal');
    assert.ok((await lockedUntil(`job ${SLOTS + 99}`)) > 0);
  });

  it('reports that the user may not renew, with the code of MongoDB [C8]', async () => {
    const reported = signal<Error>();
    await renewer.start(
      reportTo({ error: reported.fire, renewed: () => undefined, recovered: () => undefined }),
    );
    const lease = { ...(await insertLocked('a')), length: LENGTH - 1 };
    await withFailPoint(database, { commands: ['update'], how: 'denied' }, async () => {
      renewer.track([lease]);
      assert.ok(isDenied(await reported.promise));
    });
  });

  it('reports the tracked lease when another worker has the lock [C8]', async () => {
    const lost = signal<readonly TrackedLease[]>();
    await renewer.start(reportTo({ lost: lost.fire, renewed: () => undefined }));
    const lease = { ...(await insertLocked('a')), token: 'an older token', length: LENGTH - 1 };
    renewer.track([lease]);
    const leases = await lost.promise;
    assert.equal(leases.length, 1);
    assert.equal(leases[0], lease, 'the same object that was tracked');
  });
});

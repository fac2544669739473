import { redactCredentials, toError } from '../../domain/errors.js';
import { type Check, type CheckDeps, loadFacts, type Result } from './check.js';
import {
  changeStreams,
  expiry,
  indexes,
  ownClock,
  serverVersion,
  validators,
  workerClocks,
  writeConcern,
} from './server-checks.js';
import {
  disabledSchedules,
  expiredLocks,
  handlers,
  lateSchedules,
  pendingRuns,
  queues,
  workersAlive,
  workerVersions,
} from './workload-checks.js';

const CHECKS: readonly Check[] = [
  serverVersion,
  writeConcern,
  changeStreams,
  indexes,
  validators,
  expiry,
  ownClock,
  workersAlive,
  workerVersions,
  workerClocks,
  handlers,
  queues,
  expiredLocks,
  lateSchedules,
  disabledSchedules,
  pendingRuns,
];

/** The result of one check, and what to do about it. */
export interface Finding extends Result {
  check: string;
}

/** Runs all checks. A check that throws becomes a finding, too. */
export async function runChecks(deps: CheckDeps, checks: readonly Check[] = CHECKS): Promise<Finding[]> {
  const facts = loadFacts(deps);
  return Promise.all(
    checks.map(async (check): Promise<Finding> => {
      try {
        return { check: check.name, ...(await check.run(facts, deps)) };
      } catch (thrown) {
        const finding = `The check failed: ${redactCredentials(toError(thrown).message)}`;
        const advice =
          'Make sure that the database is reachable and installed, and that its user may read this.';
        return { check: check.name, level: 'error', finding, advice };
      }
    }),
  );
}

import { hideCredentials, toError } from '../domain/errors.js';
import type { Check, Result } from './checks/check.js';
import { ownClock, workerClocks } from './checks/clocks.js';
import { factsOf, type CheckParts } from './checks/facts.js';
import { expiry, indexes, validators } from './checks/installation.js';
import { disabledSchedules, lateSchedules, owedRuns } from './checks/schedules.js';
import { changeStreams, serverVersion, writeConcern } from './checks/server.js';
import { expiredLocks, handlers, queues, workersAlive, workerVersions } from './checks/workers.js';

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
  owedRuns,
];

/** What one check came to, and what to do about it. */
export interface Finding extends Result {
  check: string;
}

/** All checks, in order. One that cannot be made is a finding itself. */
export async function examine(parts: CheckParts, checks: readonly Check[] = CHECKS): Promise<Finding[]> {
  const facts = factsOf(parts);
  return Promise.all(
    checks.map(async (check): Promise<Finding> => {
      try {
        return { check: check.name, ...(await check.examine(facts, parts)) };
      } catch (thrown) {
        const finding = `This could not be checked: ${hideCredentials(toError(thrown).message)}`;
        const advice = 'See that the database is reachable, installed, and that its user may read this.';
        return { check: check.name, level: 'error', finding, advice };
      }
    }),
  );
}

import { redactCredentials, toError } from '../../domain/errors.js';
import { type CheckDeps, type CheckResult, type Checks, loadFacts } from './check.js';
import { serverChecks } from './server-checks.js';
import { workloadChecks } from './workload-checks.js';

const CHECKS: Checks = { ...serverChecks, ...workloadChecks };

/** The result of one check, and what to do about it. */
export interface Finding extends CheckResult {
  check: string;
}

/** Runs all checks. A check that throws also becomes a finding. */
export async function runChecks(deps: CheckDeps, checks = CHECKS): Promise<Finding[]> {
  const facts = loadFacts(deps);
  return Promise.all(
    Object.entries(checks).map(async ([name, check]): Promise<Finding> => {
      try {
        return { check: name, ...(await check(facts, deps)) };
      } catch (thrown) {
        const finding = `The check failed: ${redactCredentials(toError(thrown).message)}`;
        const advice =
          'Make sure that the database is reachable and installed, and that its user has the rights to read it.';
        return { check: name, level: 'error', finding, advice };
      }
    }),
  );
}

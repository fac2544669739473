import assert from 'node:assert/strict';
import type { InvalidJobs } from '../../src/worker/invalid-jobs.js';

/** For parts of a worker in tests whose jobs are all valid. */
export const noInvalidJobs: Pick<InvalidJobs, 'removeFrom' | 'end'> = {
  removeFrom: async (jobs) => {
    assert.ok(jobs.every(({ invalid }) => invalid === undefined));
    return jobs;
  },
  end: () => assert.fail('all jobs of this test are valid'),
};

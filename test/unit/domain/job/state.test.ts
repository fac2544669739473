import assert from 'node:assert/strict';
import { JOB_STATUSES, type JobDocument } from '../../../../src/domain/job/job.js';
import { JOB_STATES, type JobState, jobState, STATE_NAMES } from '../../../../src/domain/job/state.js';
import { aJob } from '../../../support/factories/job.js';
import { START, timeAfter } from '../../../support/instants.js';

const CASES: [title: string, Partial<JobDocument>, JobState][] = [
  ['due now', {}, 'waiting'],
  ['due for a while', { nextRunAt: timeAfter(-60_000) }, 'waiting'],
  ['due again after a failure', { attempts: 1 }, 'waiting'],
  ['due in a millisecond', { nextRunAt: timeAfter(1) }, 'delayed'],
  ['lost while it was prefetched, due later', { nextRunAt: timeAfter(1), lostWhileQueued: 2 }, 'delayed'],
  ['due later after a failure', { nextRunAt: timeAfter(1), attempts: 1 }, 'retrying'],
  ['due later after a crash', { nextRunAt: timeAfter(1), crashes: 1 }, 'retrying'],
  ['held by a person', { status: 'PENDING' }, 'held'],
  ['held and due later', { status: 'PENDING', nextRunAt: timeAfter(1), attempts: 1 }, 'held'],
  ['pending, but not held', { status: 'PENDING', held: null }, 'blocked'],
  ['locked in a buffer', { status: 'QUEUED' }, 'prefetched'],
  ['with a running handler', { status: 'RUNNING' }, 'running'],
  ['asked to stop', { status: 'RUNNING', cancelRequested: { reason: null, at: START } }, 'running'],
  ['completed', { status: 'COMPLETED' }, 'completed'],
  ['failed', { status: 'FAILED' }, 'failed'],
  ['cancelled', { status: 'CANCELLED' }, 'cancelled'],
  ['cancelled by an unknown writer', { status: 'CANCELLED', cancelKind: null }, 'cancelled'],
  ['skipped by a filter', { status: 'CANCELLED', cancelKind: 'skipped' }, 'skipped'],
  ['expired', { status: 'CANCELLED', cancelKind: 'expired' }, 'expired'],
];

describe('the state of a job', () => {
  for (const [title, fields, expected] of CASES) {
    it(`is ${expected} if it is ${title} [B27]`, () => {
      const job = aJob(fields);
      assert.equal(jobState(job, START), expected);
      assert.equal(JOB_STATES[expected].status, job.status);
    });
  }

  it('has a case above for every state, and a state for every status [B27]', () => {
    assert.deepEqual(new Set(CASES.map(([, , state]) => state)), new Set(STATE_NAMES));
    assert.deepEqual(new Set(STATE_NAMES.map((state) => JOB_STATES[state].status)), new Set(JOB_STATUSES));
  });
});

import assert from 'node:assert/strict';
import { type AttemptKey, hasLastRow, lastRowIds } from '../../../../src/domain/job/execution.js';
import { aJob } from '../../../support/factories/job.js';

const STARTED = new Date('2026-01-01T00:00:00Z');

function row(fence: number, fields: Partial<AttemptKey> = {}): AttemptKey {
  return { _id: `a:${fence}`, jobId: 'a', fence, lockToken: `token-${fence}`, outcome: 'retry', ...fields };
}

describe('the row of the last attempt of a finished job', () => {
  const settled = aJob({
    ...{ _id: 'a', status: 'COMPLETED', startedAt: STARTED, fence: 3, settledToken: 'token-3' },
  });

  it('has the fence of the job, or the one before', () => {
    assert.deepEqual(lastRowIds(settled), ['a:3', 'a:2']);
  });

  it('is the one that its worker writes after it has settled the job', () => {
    assert.equal(hasLastRow(settled, []), false);
    assert.equal(hasLastRow(settled, [row(2)]), false, 'an earlier attempt');
    assert.equal(hasLastRow(settled, [row(2), row(3)]), true);
  });

  it('is the one of the crash if its lock expired', () => {
    const crashed = aJob({ status: 'FAILED', startedAt: STARTED, fence: 3, settledToken: 'token-1' });
    assert.equal(hasLastRow(crashed, []), false);
    assert.equal(hasLastRow(crashed, [row(2, { outcome: 'crashed' })]), true);
  });

  it('is the one of the attempt before if it was cancelled while it waited for the next', () => {
    const cancelled = aJob({ status: 'CANCELLED', startedAt: STARTED, fence: 3, settledToken: 'token-2' });
    assert.equal(hasLastRow(cancelled, [row(2)]), true);
  });

  it('does not exist if it never started', () => {
    assert.equal(hasLastRow(aJob({ status: 'CANCELLED', startedAt: null }), []), true);
  });
});

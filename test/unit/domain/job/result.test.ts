import assert from 'node:assert/strict';
import type { FinishedJob, JobDocument } from '../../../../src/domain/job/job.js';
import { JobFailedError, resultOf } from '../../../../src/domain/job/result.js';
import { aJob } from '../../../support/factories/job.js';

function finished(fields: Partial<JobDocument>): FinishedJob {
  return { ...aJob(fields), _id: 'a' } as FinishedJob;
}

describe('the result of a finished job', () => {
  it('is what its handler returned', () => {
    assert.deepEqual(resultOf(finished({ status: 'COMPLETED', result: { n: 1 } })), { n: 1 });
  });

  it("is an error with the name, message, code and stack of the handler's if the job failed", () => {
    const error = { name: 'TypeError', message: 'no such user', code: 'E404', stack: 'TypeError: there' };
    assert.throws(
      () => resultOf(finished({ status: 'FAILED', error })),
      (thrown: JobFailedError) => {
        assert.ok(thrown instanceof JobFailedError);
        const { name, message, code, stack, jobId } = thrown;
        assert.deepEqual({ name, message, code, stack, jobId }, { ...error, jobId: 'a' });
        return true;
      },
    );
  });

  it("is an error without a code if the handler's had none", () => {
    const error = { name: 'Error', message: 'no', code: null, stack: null };
    assert.throws(() => resultOf(finished({ status: 'FAILED', error })), { message: 'no', code: undefined });
    assert.throws(() => resultOf(finished({ status: 'FAILED' })), { message: /without a stored error/ });
  });

  const at = new Date('2026-01-01T00:00:00Z');
  for (const [fields, code, message] of [
    [{ cancelRequested: { reason: 'enough', at } }, 'JOB_CANCELLED', "job 'a' was cancelled: enough"],
    [{ cancelKind: null }, 'JOB_CANCELLED', "job 'a' was cancelled: no reason given"],
    [{ cancelKind: 'skipped', skipReason: 'sunday' }, 'JOB_SKIPPED', "job 'a' was skipped: sunday"],
    [{ cancelKind: 'expired' }, 'JOB_EXPIRED', "job 'a' expired: it had not started in time"],
  ] as const) {
    it(`is the error ${code} with the reason: ${message}`, () => {
      assert.throws(() => resultOf(finished({ status: 'CANCELLED', ...fields })), { code, message });
    });
  }

  it('is an error if only its beginning is stored', () => {
    const cut = finished({ status: 'COMPLETED', result: '{"rows":[', resultCut: true });
    assert.throws(() => resultOf(cut), { code: 'RESULT_CUT', message: /job 'a' completed, but/ });
  });
});

import assert from 'node:assert/strict';
import type { AuditEntry } from '../../../src/config/query-options.js';
import { ChronosError } from '../../../src/domain/errors.js';
import { type AuditDetails, withAudit, type AuditView } from '../../../src/operations/audit.js';

const VIEW = {} as AuditView;

describe('withAudit', () => {
  const calls: string[] = [];
  /** Writing this action fails. */
  let broken: string | undefined;
  let fault: Error;

  beforeEach(() => {
    calls.length = 0;
    broken = undefined;
    fault = new Error('disk full');
  });

  const COUNTED = { counts: { finished: 1 } };

  const run = (change: () => Promise<string>, after: AuditDetails | 'refused' = COUNTED) =>
    withAudit({
      operations: {
        audit: (entry: AuditEntry) => {
          if (entry.action === broken) return Promise.reject(fault);
          calls.push(
            `${entry.action} ${entry.target ?? ''} ${entry.requestId ?? ''} ${JSON.stringify(entry.counts)}`,
          );
          return Promise.resolve(VIEW);
        },
      },
      ...{ who: 'operate:12345678', action: 'prune', requestId: 'r1', before: { target: 'x' } },
      change: () => (calls.push('change'), change()),
      after: () => after,
    });

  it('records the attempt, makes the change, records the result', async () => {
    assert.deepEqual(await run(() => Promise.resolve('done')), { result: 'done', isRecorded: true });
    assert.deepEqual(calls, ['prune:attempted x r1 undefined', 'change', 'prune x r1 {"finished":1}']);
  });

  it('makes no change when the attempt cannot be recorded', async () => {
    broken = 'prune:attempted';
    await assert.rejects(
      run(() => Promise.resolve('done')),
      { code: 'AUDIT_UNWRITABLE', cause: fault },
    );
    // A ChronosError is passed on.
    fault = new ChronosError('MONGODB_UNREACHABLE', 'gone');
    await assert.rejects(
      run(() => Promise.resolve('done')),
      fault,
    );
    assert.deepEqual(calls, []);
  });

  it('reports when the change is made but its result cannot be recorded', async () => {
    broken = 'prune';
    assert.deepEqual(await run(() => Promise.resolve('done')), { result: 'done', isRecorded: false });
  });

  it('tells a refusal from an unknown result', async () => {
    const refusal = new ChronosError('WRONG_STATE', 'no');
    await assert.rejects(
      run(() => Promise.reject(refusal)),
      refusal,
    );
    assert.deepEqual(calls.splice(0), [
      'prune:attempted x r1 undefined',
      'change',
      'prune:refused x r1 undefined',
    ]);
    assert.deepEqual(await run(() => Promise.resolve('it runs'), 'refused'), {
      result: 'it runs',
      isRecorded: true,
    });
    assert.deepEqual(calls.splice(0).at(-1), 'prune:refused x r1 undefined');
    const unknown = new ChronosError('MONGODB_UNREACHABLE', 'gone');
    await assert.rejects(
      run(() => Promise.reject(unknown)),
      unknown,
    );
    assert.deepEqual(calls, ['prune:attempted x r1 undefined', 'change']);
  });
});

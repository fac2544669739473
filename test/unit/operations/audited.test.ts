import assert from 'node:assert/strict';
import type { AuditEntry } from '../../../src/config/query-options.js';
import { ChronosError } from '../../../src/domain/errors.js';
import type { AuditView } from '../../../src/operations/audit.js';
import { audited, type AuditDetails } from '../../../src/operations/audited.js';

const VIEW = {} as AuditView;

describe('audited', () => {
  const said: string[] = [];
  /** Fails when this action is to be written. */
  let broken: string | undefined;
  let fault: Error;

  beforeEach(() => {
    said.length = 0;
    broken = undefined;
    fault = new Error('disk full');
  });

  const COUNTED = { counts: { finished: 1 } };

  const run = (change: () => Promise<string>, after: AuditDetails | 'refused' = COUNTED) =>
    audited({
      operations: {
        audit: (entry: AuditEntry) => {
          if (entry.action === broken) return Promise.reject(fault);
          said.push(
            `${entry.action} ${entry.target ?? ''} ${entry.requestId ?? ''} ${JSON.stringify(entry.counts)}`,
          );
          return Promise.resolve(VIEW);
        },
      },
      ...{ who: 'operate:12345678', action: 'prune', requestId: 'r1', before: { target: 'x' } },
      change: () => (said.push('change'), change()),
      after: () => after,
    });

  it('writes down the attempt, makes the change, writes down what came of it', async () => {
    assert.deepEqual(await run(() => Promise.resolve('done')), { answer: 'done', isRecorded: true });
    assert.deepEqual(said, ['prune:attempted x r1 undefined', 'change', 'prune x r1 {"finished":1}']);
  });

  it('changes nothing when the attempt cannot be written', async () => {
    broken = 'prune:attempted';
    await assert.rejects(
      run(() => Promise.resolve('done')),
      { code: 'AUDIT_UNWRITABLE', cause: fault },
    );
    // What explains itself is passed on.
    fault = new ChronosError('MONGODB_UNREACHABLE', 'gone');
    await assert.rejects(
      run(() => Promise.resolve('done')),
      fault,
    );
    assert.deepEqual(said, []);
  });

  it('says so when only the outcome cannot be written: the change is made', async () => {
    broken = 'prune';
    assert.deepEqual(await run(() => Promise.resolve('done')), { answer: 'done', isRecorded: false });
  });

  it('tells a refusal from an end that nobody knows', async () => {
    const refusal = new ChronosError('WRONG_STATE', 'no');
    await assert.rejects(
      run(() => Promise.reject(refusal)),
      refusal,
    );
    assert.deepEqual(said.splice(0), [
      'prune:attempted x r1 undefined',
      'change',
      'prune:refused x r1 undefined',
    ]);
    assert.deepEqual(await run(() => Promise.resolve('it runs'), 'refused'), {
      answer: 'it runs',
      isRecorded: true,
    });
    assert.deepEqual(said.splice(0).at(-1), 'prune:refused x r1 undefined');
    const unknown = new ChronosError('MONGODB_UNREACHABLE', 'gone');
    await assert.rejects(
      run(() => Promise.reject(unknown)),
      unknown,
    );
    assert.deepEqual(said, ['prune:attempted x r1 undefined', 'change']);
  });
});

import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { ChronosError, type ErrorCode } from '../../../src/domain/errors.js';
import { EXIT, EXIT_CODES, exitCodeOf } from '../../../src/process/exit.js';

describe('the exit code', () => {
  const codeOf = (code: ErrorCode, cause?: unknown): Promise<number> =>
    exitCodeOf(new ChronosError(code, 'message', { cause }));

  it('distinguishes invalid settings, an unreachable database and other failures', async () => {
    assert.equal(await codeOf('INVALID_ENVIRONMENT'), EXIT.usage);
    assert.equal(await codeOf('NOT_INSTALLED'), EXIT.usage);
    assert.equal(await codeOf('MONGODB_UNREACHABLE'), EXIT.unreachable);
    for (const code of ['WRONG_STATE', 'WORKER_STOPPING', 'JOB_NOT_FOUND', 'LOCK_HELD'] as const)
      assert.equal(await codeOf(code), EXIT.failure, code);
    assert.equal(await exitCodeOf(new Error('unexpected')), EXIT.failure);
  });

  it('is that of an unreachable database for a lost connection, also as the cause of an audit error', async () => {
    const lost = new mongo.MongoNetworkError('connection closed');
    assert.equal(await exitCodeOf(lost), EXIT.unreachable);
    assert.equal(await codeOf('AUDIT_UNWRITABLE', lost), EXIT.unreachable);
    assert.equal(await codeOf('AUDIT_UNWRITABLE', new mongo.MongoServerError({ code: 13 })), EXIT.failure);
  });

  it('is always documented', () => {
    assert.deepEqual(
      EXIT_CODES.map(({ code }) => code),
      Object.values(EXIT),
    );
  });
});

import assert from 'node:assert/strict';
import { ChronosError, type ErrorCode } from '../../../src/domain/errors.js';
import { EXIT, EXIT_CODES, exitCodeOf } from '../../../src/process/exit.js';

describe('the exit code', () => {
  const codeOf = (code: ErrorCode): number => exitCodeOf(new ChronosError(code, 'as said'));

  it('says whether another start could help', () => {
    assert.equal(codeOf('INVALID_ENVIRONMENT'), EXIT.usage);
    assert.equal(codeOf('NOT_INSTALLED'), EXIT.usage);
    assert.equal(codeOf('MONGODB_UNREACHABLE'), EXIT.unreachable);
    for (const code of ['WRONG_STATE', 'WORKER_STOPPING', 'JOB_NOT_FOUND', 'LOCK_HELD'] as const)
      assert.equal(codeOf(code), EXIT.wrong, code);
    assert.equal(exitCodeOf(new Error('a fault')), EXIT.wrong);
  });

  it('has a meaning, each one', () => {
    assert.deepEqual(
      EXIT_CODES.map(({ code }) => code),
      Object.values(EXIT),
    );
  });
});

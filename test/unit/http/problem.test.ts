import assert from 'node:assert/strict';
import { ChronosError, type ErrorCode } from '../../../src/domain/errors.js';
import { HttpProblem, toProblem } from '../../../src/http/problem.js';
import { Tokens } from '../../../src/http/request-guards.js';

describe('toProblem', () => {
  const statusOf = (code: ErrorCode): number => toProblem(new ChronosError(code, 'x'), 'r').problem.status;

  it('maps the code of an error to an HTTP status', () => {
    assert.equal(statusOf('JOB_NOT_FOUND'), 404);
    assert.equal(statusOf('SCHEDULE_EXISTS'), 409);
    assert.equal(statusOf('INVALID_PAYLOAD'), 422);
    assert.equal(statusOf('MONGODB_UNREACHABLE'), 503);
    assert.equal(statusOf('QUERY_TOO_SLOW'), 503);
    assert.deepEqual(toProblem(new HttpProblem(421, 'WRONG_HOST', 'unknown host'), 'r1').problem, {
      type: 'urn:chronos:problem:WRONG_HOST',
      title: 'Wrong host',
      status: 421,
      detail: 'unknown host',
      code: 'WRONG_HOST',
      requestId: 'r1',
    });
  });

  it('hides the message of unexpected errors, and credentials in all errors', () => {
    const { problem, isUnexpected } = toProblem(new TypeError('secret at line 7'), 'r1');
    assert.deepEqual([problem.status, problem.code, isUnexpected], [500, 'UNEXPECTED', true]);
    assert.ok(!JSON.stringify(problem).includes('secret'));
    const uri = 'mongodb://root:hunter2@db/app';
    for (const error of [new ChronosError('INVALID_ARGUMENT', uri), new HttpProblem(400, 'X', uri)])
      assert.ok(!JSON.stringify(toProblem(error, 'r').problem).includes('hunter2'));
    const long = toProblem(new HttpProblem(400, 'X', 'y'.repeat(100_000)), 'r').problem;
    assert.ok(long.detail.length <= 2000);
  });
});

describe('Tokens', () => {
  const tokens = new Tokens('operate-operate-operate', 'read-read-read-read');

  it('identifies a token by its role and a fingerprint, not by the token itself', () => {
    const identity = tokens.identify('Bearer operate-operate-operate');
    assert.equal(identity?.role, 'operate');
    assert.match(identity?.who ?? '', /^operate:[0-9a-f]{8}$/);
    assert.equal(tokens.identify('Bearer read-read-read-read')?.role, 'read');
    for (const wrong of [
      undefined,
      '',
      'Bearer',
      'Bearer x',
      'operate-operate-operate',
      'Bearer operate-operate-operatE',
    ])
      assert.equal(tokens.identify(wrong), undefined, wrong);
  });

  it('allows reading without a token if none is configured', () => {
    const none = new Tokens(undefined, undefined);
    assert.equal(none.identify(undefined)?.role, 'read');
    assert.equal(none.identify('Bearer anything-at-all'), undefined);
    assert.equal(none.allows('operate'), false);
  });
});

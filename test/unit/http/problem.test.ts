import assert from 'node:assert/strict';
import { ChronosError, type ErrorCode } from '../../../src/domain/errors.js';
import { HttpProblem, problemOf } from '../../../src/http/problem.js';
import { Tokens } from '../../../src/http/tokens.js';

describe('problemOf', () => {
  const statusOf = (code: ErrorCode): number => problemOf(new ChronosError(code, 'x'), 'r').problem.status;

  it('says what an error means to whoever asked', () => {
    assert.equal(statusOf('JOB_NOT_FOUND'), 404);
    assert.equal(statusOf('SCHEDULE_EXISTS'), 409);
    assert.equal(statusOf('INVALID_PAYLOAD'), 422);
    assert.equal(statusOf('MONGODB_UNREACHABLE'), 503);
    assert.equal(statusOf('QUERY_TOO_SLOW'), 503);
    assert.deepEqual(problemOf(new HttpProblem(421, 'WRONG_HOST', 'which?'), 'r1').problem, {
      type: 'urn:chronos:problem:WRONG_HOST',
      title: 'This is not the host that was meant',
      status: 421,
      detail: 'which?',
      code: 'WRONG_HOST',
      requestId: 'r1',
    });
  });

  it('tells nothing of an error that nobody expected, and no credentials of any', () => {
    const { problem, isUnexpected } = problemOf(new TypeError('secret at line 7'), 'r1');
    assert.deepEqual([problem.status, problem.code, isUnexpected], [500, 'UNEXPECTED', true]);
    assert.ok(!JSON.stringify(problem).includes('secret'));
    const uri = 'mongodb://root:hunter2@db/app';
    for (const error of [new ChronosError('INVALID_ARGUMENT', uri), new HttpProblem(400, 'X', uri)])
      assert.ok(!JSON.stringify(problemOf(error, 'r').problem).includes('hunter2'));
    const long = problemOf(new HttpProblem(400, 'X', 'y'.repeat(100_000)), 'r').problem;
    assert.ok(long.detail.length <= 2000);
  });
});

describe('Tokens', () => {
  const tokens = new Tokens('operate-operate-operate', 'read-read-read-read');

  it('knows who may do what, by a fingerprint that is not the token', () => {
    const operator = tokens.identify('Bearer operate-operate-operate');
    assert.equal(operator?.role, 'operate');
    assert.match(operator?.who ?? '', /^operate:[0-9a-f]{8}$/);
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

  it('without any, whoever asks may read', () => {
    const none = new Tokens(undefined, undefined);
    assert.equal(none.identify(undefined)?.role, 'read');
    assert.equal(none.identify('Bearer anything-at-all'), undefined);
    assert.equal(none.allows('operate'), false);
  });
});

import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import { operatorOf } from '../../../src/cli/operator.js';

describe('operatorOf', () => {
  it('is who the operating system says, where', () => {
    assert.equal(operatorOf(), `cli:${userInfo().username}@${hostname()}`);
  });

  it('does without a name, and fits whatever the machine is called', () => {
    const nameless = (): never => {
      throw new Error('ENOENT: no such user');
    };
    const host = 'h'.repeat(253);
    const who = operatorOf({ userInfo: nameless as unknown as typeof userInfo, hostname: () => host });
    assert.match(who, /^cli:uid-\d+@h+$/);
    assert.equal(who.length, 200);
  });
});

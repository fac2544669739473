import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import { auditUser } from '../../../src/cli/context.js';

describe('the audit user', () => {
  it('is the user name and the host name', () => {
    assert.equal(auditUser(), `cli:${userInfo().username}@${hostname()}`);
  });

  it('is the user id if there is no name, and is truncated to 200 characters', () => {
    const withoutName = (): never => {
      throw new Error('ENOENT: no such user');
    };
    const host = 'h'.repeat(253);
    const user = auditUser({ userInfo: withoutName as unknown as typeof userInfo, hostname: () => host });
    assert.match(user, /^cli:uid-\d+@h+$/);
    assert.equal(user.length, 200);
  });
});

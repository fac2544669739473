import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import { auditUser } from '../../../src/cli/context.js';

describe('the audit user', () => {
  it('is the name and the host of the operating system', () => {
    assert.equal(auditUser(), `cli:${userInfo().username}@${hostname()}`);
  });

  it('works without a name and with a host of any length', () => {
    const nameless = (): never => {
      throw new Error('ENOENT: no such user');
    };
    const host = 'h'.repeat(253);
    const who = auditUser({ userInfo: nameless as unknown as typeof userInfo, hostname: () => host });
    assert.match(who, /^cli:uid-\d+@h+$/);
    assert.equal(who.length, 200);
  });
});

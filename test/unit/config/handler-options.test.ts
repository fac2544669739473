import assert from 'node:assert/strict';
import { z } from 'zod';
import { resolveHandlerOptions } from '../../../src/config/handler-options.js';

describe('resolveHandlerOptions', () => {
  it('reads and freezes options, and adds none that are missing', () => {
    const schema = z.object({ to: z.string() });
    const retries = { max: 5, base: '2s' };
    const options = { timeout: '2m', lease: '10s', retries, schema, settle: 'immediate' };
    const resolved = resolveHandlerOptions('emails', options);
    assert.deepEqual(
      { ...resolved, schema: undefined },
      {
        timeout: 120_000,
        lease: 10_000,
        retries: { max: 5, base: 2000 },
        schema: undefined,
        settle: 'immediate',
      },
    );
    assert.equal(resolved.schema, schema);
    assert.ok(Object.isFrozen(resolved));
    assert.deepEqual(resolveHandlerOptions('emails', {}), {});
  });

  it('rejects `concurrency`, which is not available yet, instead of ignoring it', () => {
    assert.throws(() => resolveHandlerOptions('emails', { concurrency: 1 }), {
      code: 'INVALID_OPTIONS',
      message:
        "options of handler 'emails'.concurrency is not available yet: this version has no limit per task type across all workers",
    });
  });

  it('reports all problems with the name of the handler', () => {
    assert.throws(() => resolveHandlerOptions('emails', { timout: 1, lease: 1, schema: {}, settle: 'now' }), {
      message: [
        '4 problems:',
        "  - options of handler 'emails'.timout is not an option (did you mean 'timeout'?)",
        "  - options of handler 'emails'.lease must be at least 500 ms, got 1",
        "  - options of handler 'emails'.schema must be a schema that follows Standard Schema, got an object",
        "  - options of handler 'emails'.settle must be one of batched, immediate, got 'now'",
      ].join('\n'),
    });
  });

  it('accepts any Standard Schema, also a function', () => {
    const validate = (value: unknown): { value: unknown } => ({ value });
    const standard = { version: 1, vendor: 'test', validate };
    const callable = Object.assign(() => true, { '~standard': standard });
    for (const schema of [{ '~standard': standard }, callable]) {
      assert.equal(resolveHandlerOptions('emails', { schema }).schema, schema);
    }
  });

  it('accepts hooks and filters, each as one function or a list [B26]', () => {
    const [one, two] = [() => true, () => false];
    const options = {
      when: one,
      skip: [one],
      before: [one, two],
      onSuccess: one,
      onError: two,
      after: [two],
    };
    assert.deepEqual(resolveHandlerOptions('emails', options), {
      when: [one],
      skip: [one],
      before: [one, two],
      onSuccess: [one],
      onError: [two],
      after: [two],
    });
    assert.throws(() => resolveHandlerOptions('emails', { before: [one, 'log'], after: true }), {
      message: [
        '2 problems:',
        "  - options of handler 'emails'.before[1] must be a function, got 'log'",
        "  - options of handler 'emails'.after must be a function, got true",
      ].join('\n'),
    });
  });

  it('accepts functions in retries [B25]', () => {
    const retries = { max: 5, delay: () => '1s', if: () => true };
    assert.deepEqual(resolveHandlerOptions('emails', { retries }).retries, retries);
    assert.throws(() => resolveHandlerOptions('emails', { retries: { delay: '1s', if: true } }), {
      message: /retries\.delay must be a function, got '1s'\n.*retries\.if must be a function, got true/,
    });
  });

  it('rejects options that are not an object', () => {
    for (const input of [null, 'timeout', 5, []]) {
      assert.throws(() => resolveHandlerOptions('emails', input), { message: /must be an object, got / });
    }
  });

  it('raises the default cap to a longer base, and rejects a cap below the base [J8]', () => {
    assert.deepEqual(resolveHandlerOptions('work', { retries: { base: '1h' } }).retries, {
      base: 3_600_000,
      cap: 3_600_000,
    });
    assert.throws(
      () => resolveHandlerOptions('work', { retries: { base: '1h', cap: '1m' } }),
      /retries\.cap \(60000 ms\) must not be shorter/,
    );
  });
});

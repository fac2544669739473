import assert from 'node:assert/strict';
import { z } from 'zod';
import { applySchema, assertMatchesSchema } from '../../../src/handlers/payload.js';

const schema = z.object({ to: z.string(), copies: z.array(z.object({ count: z.number() })) });

describe('applySchema', () => {
  it('returns the payload as the schema transforms it', async () => {
    const transforming = z.object({ n: z.string().transform(Number), extra: z.string().default('none') });
    assert.deepEqual(await applySchema('work', transforming, { n: '7' }), { value: { n: 7, extra: 'none' } });
  });

  it('waits for a schema that is async', async () => {
    const async = z.string().refine(async (text) => Promise.resolve(text === 'good'), 'is not good');
    assert.deepEqual(await applySchema('work', async, 'good'), { value: 'good' });
    await assert.rejects(assertMatchesSchema('work', async, 'bad'), { message: /payload: is not good/ });
  });

  it('reports every problem with its path', async () => {
    await assert.rejects(
      assertMatchesSchema('work', schema, { to: 1, copies: [{ count: 1 }, { count: 'two' }] }),
      {
        code: 'INVALID_PAYLOAD',
        message: [
          "the payload for 'work' does not match its schema:",
          '  - payload.to: Invalid input: expected string, received number',
          '  - payload.copies[1].count: Invalid input: expected number, received string',
        ].join('\n'),
      },
    );
  });

  it('formats every kind of path that Standard Schema allows', async () => {
    const validate = (): {
      issues: { message: string; path?: (PropertyKey | { key: PropertyKey })[] }[];
    } => ({
      issues: [
        { message: 'no', path: ['list', { key: 2 }, { key: 'name' }, Symbol('s')] },
        { message: 'all' },
      ],
    });
    const raw = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    await assert.rejects(assertMatchesSchema('work', raw, null), {
      message: /- payload\.list\[2\]\.name\.Symbol\(s\): no\n {2}- payload: all$/,
    });
  });
});

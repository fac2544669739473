import assert from 'node:assert/strict';
import {
  anything,
  collectErrors,
  described,
  duration,
  flag,
  fromText,
  instant,
  integer,
  listOf,
  matching,
  name,
  nullable,
  object,
  oneOf,
  oneOrMore,
  parse,
  refine,
  requiring,
  secret,
  type Shape,
  text,
  textMap,
} from '../../../src/domain/validation.js';
import { holes, revokedProxy, throwingGetter } from '../../support/fuzz.js';

const isEven = (value: unknown): value is number => typeof value === 'number' && value % 2 === 0;

function errorOf(shape: Shape<unknown>, input: unknown): string {
  try {
    parse(shape, input, 'it', 'INVALID_ARGUMENT');
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('shapes', () => {
  const cases: [title: string, shape: Shape<unknown>, valid: unknown[], invalid: [unknown, string][]][] = [
    ['integer', integer(1, 5), [1, 5], [[6, 'it must be a whole number from 1 to 5, got 6']]],
    [
      'duration',
      duration({ min: 10, max: 1000, why: 'reasons' }),
      [10, '1s'],
      [
        ['9ms', "it must be at least 10 ms, got '9ms'"],
        [1001, 'it must be at most 1000 ms, got 1001: reasons'],
      ],
    ],
    ['flag', flag, [true, false], [['yes', "it must be true or false, got 'yes'"]]],
    [
      'oneOf',
      oneOf('red', 'blue'),
      ['red'],
      [['rad', "it must be one of red, blue, got 'rad' (did you mean 'red'?)"]],
    ],
    [
      'text',
      text(3),
      ['abc'],
      [
        ['', 'it must not be empty'],
        ['abcd', 'it must have at most 3 characters, got 4'],
      ],
    ],
    [
      'matching',
      matching('an even number', isEven),
      [2],
      [[[], 'it must be an even number, got an empty list']],
    ],
    [
      'secret',
      secret('an even number', isEven),
      [2],
      [['x', 'it must be an even number (its value is not shown)']],
    ],
    [
      'listOf',
      listOf(flag, { max: 2 }),
      [[true]],
      [
        [[], 'it must be a list with at least one entry, got an empty list'],
        [[true, true, true], 'it must have at most 2 entries, got 3'],
        [[true, 1], 'it[1] must be true or false, got 1'],
      ],
    ],
    ['nullable', nullable(flag), [null, true], [[1, 'it must be true or false, got 1']]],
    ['textMap', textMap(() => undefined), [{ a: '' }], [[{ a: 1 }, 'it.a must be a string, got number']]],
  ];
  for (const [title, shape, valid, invalid] of cases) {
    it(`${title} accepts valid values and explains why others are invalid`, () => {
      for (const value of valid) assert.equal(errorOf(shape, value), '');
      for (const [value, message] of invalid) assert.equal(errorOf(shape, value), message);
    });
  }

  it('convert values', () => {
    assert.equal(parse(duration(), '2s', 'it', 'INVALID_ARGUMENT'), 2000);
    assert.deepEqual(parse(oneOrMore(integer(0, 9), 3), 5, 'it', 'INVALID_ARGUMENT'), [5]);
    assert.deepEqual(
      parse(instant('Europe/Berlin'), '2026-11-01 03:15', 'it', 'INVALID_ARGUMENT'),
      new Date('2026-11-01T02:15:00Z'),
    );
  });

  it('list every problem of an object in one error', () => {
    const shape = requiring(
      object<{ size: number; color: string; at: unknown }>(
        { size: integer(1, 3), color: name, at: anything },
        { rejected: { weight: 'is not available yet' } },
      ),
      { color: 'set it to a color' },
    );
    assert.equal(
      errorOf(shape, { size: 4, weight: 1, colour: 'red', at: undefined }),
      [
        '4 problems:',
        '  - it.size must be a whole number from 1 to 3, got 4',
        '  - it.weight is not available yet',
        "  - it.colour is not an option (did you mean 'color'?)",
        '  - it.color is missing: set it to a color',
      ].join('\n'),
    );
    assert.equal(errorOf(shape, []), 'it must be an object, got an empty list');
    assert.deepEqual(parse(shape, { color: 'red' }, 'it', 'INVALID_ARGUMENT'), { color: 'red' });
  });

  it('can be refined with checks across keys', () => {
    const range = refine(
      object<{ min: number; max: number }>({ min: integer(0, 9), max: integer(0, 9) }),
      (read, path, errors) => {
        if ((read.min ?? 0) > (read.max ?? 9)) errors.push(`${path}.min must not exceed ${path}.max`);
        return read;
      },
    );
    assert.equal(errorOf(range, { min: 5, max: 3 }), 'it.min must not exceed it.max');
    assert.equal(errorOf(range, { min: 3, max: 5 }), '');
  });

  it('have a JSON Schema with the same limits', () => {
    const shape = requiring(
      object<{ n: number; tags: readonly string[] }>({
        n: described(integer(1, 5), 'how many'),
        tags: listOf(name),
      }),
      { n: '' },
    );
    assert.deepEqual(shape.schema, {
      type: 'object',
      properties: {
        n: { type: 'integer', minimum: 1, maximum: 5, description: 'how many' },
        tags: {
          type: 'array',
          items: { type: 'string', minLength: 1, maxLength: 200, pattern: '^[^\\u0000]*$' },
          minItems: 1,
        },
      },
      required: ['n'],
      additionalProperties: false,
    });
  });

  it('read text from the command line and the environment', () => {
    const read = <T>(shape: Shape<T>, value: string): T =>
      parse(fromText(shape), value, 'it', 'INVALID_ARGUMENT');
    assert.equal(read(integer(1, 5), '3'), 3);
    assert.equal(read(duration(), '250'), 250);
    assert.equal(read(duration(), '2s'), 2000);
    assert.equal(read(name, '42'), '42');
    assert.deepEqual(read(listOf(name), 'a, b,,c'), ['a', 'b', 'c']);
    assert.deepEqual(read(listOf(integer(1, 5)), '1,5'), [1, 5]);
    assert.throws(() => read(integer(1, 5), '1e0'), /got '1e0'/);
  });

  it('check a stored document, which may have other fields', () => {
    const fields = { n: integer(1, 5), at: nullable(flag) };
    assert.deepEqual(collectErrors(fields, { n: 1, at: null, other: true }), []);
    assert.deepEqual(collectErrors(fields, { n: 1 }), ['at must be true or false, got undefined']);
  });
});

describe('parse', () => {
  it('reports what a getter or a proxy throws', () => {
    const shape = object<{ queue: string }>({ queue: name });
    const expected =
      /^it cannot be read, because a getter or a proxy in it throws \(.+\): pass a plain value$/;
    assert.match(errorOf(shape, throwingGetter('queue')), expected);
    assert.match(errorOf(shape, revokedProxy({})), expected);
    assert.match(errorOf(listOf(flag), revokedProxy([])), expected);
  });

  it('rejects lists with billions of holes before it reads them', () => {
    assert.equal(errorOf(listOf(flag), holes(4e9)), 'it must have at most 100000 entries, got 4000000000');
  });

  it('lists a hundred problems of many, and twenty unknown options', () => {
    const problems = errorOf(
      listOf(flag),
      Array.from({ length: 1000 }, () => 1),
    ).split('\n');
    assert.equal(problems.length, 102);
    assert.equal(problems.at(-1), '  - and 900 more');
    const options = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, 1]));
    assert.match(errorOf(object({}), options), /^21 problems:[^]* it has 1000 unknown options in total$/);
  });

  it('does not compare long words with the names of options', () => {
    const startedAt = performance.now();
    assert.match(
      errorOf(object({ queue: name }), { ['x'.repeat(1 << 20)]: 1 }),
      /^it\.x{100} is not an option$/,
    );
    assert.match(errorOf(oneOf('red', 'blue'), 'x'.repeat(1 << 20)), /got 'x{80}'$/);
    assert.ok(performance.now() - startedAt < 1000);
  });
});

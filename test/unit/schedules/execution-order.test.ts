import assert from 'node:assert/strict';
import fc from 'fast-check';
import { executionOrder } from '../../../src/schedules/execution-order.js';

interface Node {
  name: string;
  dependsOn: string[];
}

/** `'b a'` is b, which depends on a. */
function nodes(...lines: string[]): Node[] {
  return lines.map((line) => {
    const [name = '', ...dependsOn] = line.split(' ');
    return { name, dependsOn };
  });
}

function order(...lines: string[]): string {
  return executionOrder(nodes(...lines))
    .map(({ name }) => name)
    .join(' ');
}

describe('executionOrder', () => {
  it('D9 keeps the order given where nothing depends on anything', () => {
    assert.equal(order(), '');
    assert.equal(order('c', 'a', 'b'), 'c a b');
  });

  it('D9 puts each after what it depends on: extract, transform, load', () => {
    assert.equal(order('extract', 'transform extract', 'load transform'), 'extract transform load');
  });

  it('D9 names may be declared later', () => {
    assert.equal(order('load transform', 'transform extract', 'extract'), 'extract transform load');
  });

  it('D9 moves no more than it has to', () => {
    assert.equal(order('a', 'b d', 'c', 'd', 'e'), 'a d b c e');
  });

  it('D9 several may need the same one, and one may need several, or one twice', () => {
    assert.equal(order('top left right', 'left base', 'right base', 'base'), 'base left right top');
    assert.equal(order('b a a', 'a'), 'a b');
  });

  it('D9 says which name is unknown, who wants it, and what may have been meant', () => {
    assert.throws(() => order('extract', 'load extrakt'), {
      code: 'DEPENDENCY_UNKNOWN',
      message: "schedule 'load' depends on 'extrakt', which is not defined (did you mean 'extract'?)",
    });
    assert.throws(() => order('load something-else'), {
      code: 'DEPENDENCY_UNKNOWN',
      message: "schedule 'load' depends on 'something-else', which is not defined",
    });
  });

  it('D9 names the cycle, and only the cycle', () => {
    assert.throws(() => order('x a', 'a b', 'b c', 'c a'), {
      code: 'DEPENDENCY_CYCLE',
      message: 'schedules depend on each other in a circle: a → b → c → a',
    });
    assert.throws(() => order('a', 'b b'), {
      code: 'DEPENDENCY_CYCLE',
      message: 'schedules depend on each other in a circle: b → b',
    });
  });

  it('D9 takes names like constructor and __proto__ for what they are', () => {
    assert.equal(order('b constructor __proto__', 'constructor', '__proto__'), 'constructor __proto__ b');
    assert.throws(() => order('a toString'), { code: 'DEPENDENCY_UNKNOWN' });
  });

  it('D9 a long chain, told backwards, is no trouble', () => {
    const length = 1000;
    const chain = Array.from({ length }, (_, i): Node => ({ name: `n${i}`, dependsOn: [`n${i + 1}`] }));
    const ordered = executionOrder([...chain, { name: `n${length}`, dependsOn: [] }]);
    assert.deepEqual(
      ordered.map(({ name }) => name),
      Array.from({ length: length + 1 }, (_, i) => `n${length - i}`),
    );
  });

  it('D9 a thousand that share all they need are looked at once each', () => {
    const layers = 20;
    const width = 50;
    const layered = Array.from({ length: layers * width }, (_, i): Node => ({
      name: `n${i}`,
      dependsOn: i < width ? [] : Array.from({ length: width }, (_, j) => `n${i - (i % width) - width + j}`),
    }));
    assert.equal(executionOrder(layered.toReversed()).length, layers * width);
  });

  it('D9 whatever depends on what: everything once, dependencies first, or there is a cycle', () => {
    const graph = fc.integer({ min: 1, max: 8 }).chain((size) =>
      fc.array(fc.tuple(fc.nat(size - 1), fc.nat(size - 1)), { maxLength: 12 }).map((edges) =>
        Array.from({ length: size }, (_, i): Node => ({
          name: `n${i}`,
          dependsOn: edges.filter(([from]) => from === i).map(([, to]) => `n${to}`),
        })),
      ),
    );
    fc.assert(
      fc.property(graph, (all) => {
        try {
          const names = executionOrder(all).map(({ name }) => name);
          assert.deepEqual([...names].sort(), all.map(({ name }) => name).sort());
          for (const { name, dependsOn } of all) {
            for (const dependency of dependsOn)
              assert.ok(names.indexOf(dependency) < names.indexOf(name), `${dependency} before ${name}`);
          }
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'DEPENDENCY_CYCLE', String(error));
          assert.ok(hasCycle(all));
        }
      }),
      { seed: 20_260_101, numRuns: 500 },
    );
  });
});

/** What is left when those that need nothing are taken away again and again. */
function hasCycle(all: readonly Node[]): boolean {
  const left = new Map(all.map(({ name, dependsOn }) => [name, dependsOn]));
  for (;;) {
    const free = [...left].filter(([, needs]) => needs.every((need) => !left.has(need)));
    if (free.length === 0) return left.size > 0;
    for (const [name] of free) left.delete(name);
  }
}

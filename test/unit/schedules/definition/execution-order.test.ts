import assert from 'node:assert/strict';
import fc from 'fast-check';
import { executionOrder } from '../../../../src/schedules/definition/definition-registry.js';

interface Node {
  name: string;
  dependsOn: string[];
}

/** `'b a'` is a definition b that depends on a. */
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
  it('keeps the order of definitions without dependencies [D9]', () => {
    assert.equal(order(), '');
    assert.equal(order('c', 'a', 'b'), 'c a b');
  });

  it('puts each definition after its dependencies: extract, transform, load [D9]', () => {
    assert.equal(order('extract', 'transform extract', 'load transform'), 'extract transform load');
  });

  it('accepts names that are declared later [D9]', () => {
    assert.equal(order('load transform', 'transform extract', 'extract'), 'extract transform load');
  });

  it('moves no more definitions than necessary [D9]', () => {
    assert.equal(order('a', 'b d', 'c', 'd', 'e'), 'a d b c e');
  });

  it('accepts shared, several and repeated dependencies [D9]', () => {
    assert.equal(order('top left right', 'left base', 'right base', 'base'), 'base left right top');
    assert.equal(order('b a a', 'a'), 'a b');
  });

  it('reports an unknown name, the definition that depends on it, and a suggestion [D9]', () => {
    assert.throws(() => order('extract', 'load extrakt'), {
      code: 'DEPENDENCY_UNKNOWN',
      message: "schedule 'load' depends on 'extrakt', which is not defined (did you mean 'extract'?)",
    });
    assert.throws(() => order('load something-else'), {
      code: 'DEPENDENCY_UNKNOWN',
      message: "schedule 'load' depends on 'something-else', which is not defined",
    });
  });

  it('reports only the names of the cycle [D9]', () => {
    assert.throws(() => order('x a', 'a b', 'b c', 'c a'), {
      code: 'DEPENDENCY_CYCLE',
      message: 'schedules depend on each other in a cycle: a → b → c → a',
    });
    assert.throws(() => order('a', 'b b'), {
      code: 'DEPENDENCY_CYCLE',
      message: 'schedules depend on each other in a cycle: b → b',
    });
  });

  it('accepts names like constructor and __proto__ [D9]', () => {
    assert.equal(order('b constructor __proto__', 'constructor', '__proto__'), 'constructor __proto__ b');
    assert.throws(() => order('a toString'), { code: 'DEPENDENCY_UNKNOWN' });
  });

  it('sorts a long chain in reverse order [D9]', () => {
    const length = 1000;
    const chain = Array.from({ length }, (_, i): Node => ({ name: `n${i}`, dependsOn: [`n${i + 1}`] }));
    const ordered = executionOrder([...chain, { name: `n${length}`, dependsOn: [] }]);
    assert.deepEqual(
      ordered.map(({ name }) => name),
      Array.from({ length: length + 1 }, (_, i) => `n${length - i}`),
    );
  });

  it('visits a thousand definitions with shared dependencies once each [D9]', () => {
    const layers = 20;
    const width = 50;
    const layered = Array.from({ length: layers * width }, (_, i): Node => ({
      name: `n${i}`,
      dependsOn: i < width ? [] : Array.from({ length: width }, (_, j) => `n${i - (i % width) - width + j}`),
    }));
    assert.equal(executionOrder(layered.toReversed()).length, layers * width);
  });

  it('returns everything once with dependencies first, or reports a cycle, for any graph [D9]', () => {
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

/** Removes nodes without dependencies until none is left; only the nodes of cycles remain. */
function hasCycle(all: readonly Node[]): boolean {
  const remaining = new Map(all.map(({ name, dependsOn }) => [name, dependsOn]));
  for (;;) {
    const free = [...remaining].filter(([, dependsOn]) => dependsOn.every((name) => !remaining.has(name)));
    if (free.length === 0) return remaining.size > 0;
    for (const [name] of free) remaining.delete(name);
  }
}

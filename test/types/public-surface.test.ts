import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.join(HERE, '../..');

function filesIn(folder: string): string[] {
  return readdirSync(path.join(HERE, folder)).map((name) => path.join(HERE, folder, name));
}

/** The errors the compiler finds in these files, as `line: message`, by file. */
function compile(files: readonly string[], extraOptions: ts.CompilerOptions = {}): Map<string, string[]> {
  const { config } = ts.readConfigFile(path.join(ROOT, 'tsconfig.json'), (file) => ts.sys.readFile(file)) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const program = ts.createProgram(files, { ...options, types: ['node'], ...extraOptions });
  return new Map(
    files.map((file) => {
      const source = program.getSourceFile(file);
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return [
        file,
        found.map(({ start = 0, messageText }) => {
          const line = (source?.getLineAndCharacterOfPosition(start).line ?? 0) + 1;
          return `${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
        }),
      ];
    }),
  );
}

/** The lines that must not compile, with the reason from the comment above each. */
function rejectedLines(file: string): Map<number, string> {
  const lines = readFileSync(file, 'utf8').split('\n');
  return new Map(
    lines.flatMap((line, index) => {
      const reason = /^\s*\/\/ rejected: (.+)$/.exec(line)?.[1];
      return reason === undefined ? [] : [[index + 2, reason] as const];
    }),
  );
}

describe('the types of the public surface', () => {
  const [accepted, rejected, merged] = [filesIn('accepted'), filesIn('rejected'), filesIn('merged')];
  let errors: Map<string, string[]>;

  before(() => {
    // Task types that a program adds by declaration merging hold for the whole program: it is compiled separately.
    const paths = { 'chronos-worker': [path.join(ROOT, 'src/index.ts')] };
    errors = new Map([...compile([...accepted, ...rejected]), ...compile(merged, { paths })]);
  });

  for (const file of accepted) {
    it(`accept ${path.basename(file, '.ts')}`, () => assert.deepEqual(errors.get(file), []));
  }

  for (const file of [...rejected, ...merged]) {
    const expected = rejectedLines(file);

    for (const [line, reason] of expected) {
      it(`reject ${reason} (${path.basename(file)}:${line})`, () => {
        const found = errors.get(file)?.filter((error) => error.startsWith(`${line}: `));
        assert.equal(found?.length, 1, `expected one error there, got ${JSON.stringify(found)}`);
      });
    }

    it(`reject nothing else in ${path.basename(file)}`, () => {
      const others = errors.get(file)?.filter((error) => !expected.has(Number.parseInt(error)));
      assert.deepEqual(others, []);
    });
  }

  it('report a missing payload as a missing argument [B16]', () => {
    const found = [...errors].find(([file]) => file.endsWith('rejected/tasks.ts'))?.[1] ?? [];
    assert.ok(
      found.some((error) => error.endsWith('Expected 2-3 arguments, but got 1.')),
      found.join('\n'),
    );
  });
});

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import ts from 'typescript';

const PAGE = new URL('../../../docs/architecture.md', import.meta.url);
/** A link to a file, and the names in backticks right after it, such as "`claimOne`, `findDue` and `claimBatch`". */
const REFERENCE = /\[[^\]]+\]\((\.\.\/[^)#]+)\)((?:(?:,| and)? `[^`]+`)*)/g;

interface Reference {
  file: URL;
  names: string[];
}

function references(): Reference[] {
  return [...readFileSync(PAGE, 'utf8').matchAll(REFERENCE)].map(([, path = '', names = '']) => ({
    file: new URL(path, PAGE),
    names: [...names.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  }));
}

/** Functions, classes, constants and types of a file, and methods as `Class.method`. */
function declarations(file: URL): Set<string> {
  const source = ts.createSourceFile(file.pathname, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const names = source.statements.flatMap((statement): string[] => {
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.getText());
    if (ts.isClassDeclaration(statement)) {
      const className = statement.name?.text ?? '';
      const members = statement.members.map((member) => `${className}.${member.name?.getText() ?? ''}`);
      return [className, ...members];
    }
    const isNamed =
      ts.isFunctionDeclaration(statement) ||
      ts.isInterfaceDeclaration(statement) ||
      ts.isTypeAliasDeclaration(statement);
    return isNamed ? [statement.name?.text ?? ''] : [];
  });
  return new Set(names);
}

describe('docs/architecture.md', () => {
  it('links only to files that exist', () => {
    assert.ok(references().length > 20);
    const missing = references().filter(({ file }) => !existsSync(file));
    assert.deepEqual(
      missing.map(({ file }) => file.pathname),
      [],
    );
  });

  it('names only functions, classes and methods that the linked file declares', () => {
    const missing = references()
      .filter(({ file }) => existsSync(file))
      .flatMap(({ file, names }) => {
        const declared = declarations(file);
        return names.filter((name) => !declared.has(name)).map((name) => `${file.pathname}: ${name}`);
      });
    assert.deepEqual(missing, []);
  });

  for (const title of ['One job', 'A schedule', 'A stale lock', 'stop()']) {
    it(`has the walkthrough "${title}" as a numbered list with links`, () => {
      const section =
        readFileSync(PAGE, 'utf8')
          .split('\n## ')
          .find((text) => text.startsWith(title)) ?? '';
      const steps = section.split('\n').filter((line) => /^\d+\. /.test(line));
      assert.ok(steps.length >= 6, `${steps.length} steps`);
      assert.ok(steps.filter((step) => step.includes('](../src/')).length >= 5);
    });
  }
});

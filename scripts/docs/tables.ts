// The parts of docs/ that the code knows better than any author: they are generated, and a test keeps them true.
import ts from 'typescript';
import { TRANSITIONS, type Transition } from '../../src/domain/transitions.js';

export function transitionTable(): string {
  const rows = Object.entries<Transition>(TRANSITIONS).map(
    ([name, { from, to, fence, meaning }]) =>
      `| ${name} | ${from.join(', ')} | ${to} | ${fence === 1 ? '+1' : '–'} | ${meaning} |`,
  );
  return ['| transition | from | to | fence | when |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** A table of an interface's properties and what their TSDoc says. */
export function optionTable(source: string, interfaceName: string, heading = 'option'): string {
  const file = ts.createSourceFile('options.ts', source, ts.ScriptTarget.Latest, true);
  const found = file.statements.find(
    (statement): statement is ts.InterfaceDeclaration =>
      ts.isInterfaceDeclaration(statement) && statement.name.text === interfaceName,
  );
  if (found === undefined) throw new Error(`there is no interface ${interfaceName}`);
  const rows = found.members.filter(ts.isPropertySignature).map((member) => {
    const [comment] = ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc);
    const text = ts.getTextOfJSDocComment(comment?.comment) ?? '';
    if (text === '')
      throw new Error(
        `${interfaceName}.${member.name.getText()} has no comment that says its unit and default`,
      );
    return `| \`${member.name.getText().replaceAll("'", '')}\` | \`${(member.type?.getText() ?? '').replaceAll('|', '\\|').replace(/\s+/g, ' ')}\` | ${text.replace(/\s+/g, ' ')} |`;
  });
  return [`| ${heading} | type | meaning |`, '|---|---|---|', ...rows].join('\n');
}

/** Puts the table between the marks `<!-- name -->` and `<!-- /name -->` of a page. */
export function fill(page: string, name: string, table: string): string {
  const marks = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!marks.test(page)) throw new Error(`the page has no place for the table ${name}`);
  return page.replace(marks, (_, before: string, after: string) => `${before}\n${table}\n\n${after}`);
}

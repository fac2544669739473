import ts from 'typescript';
import { FREQUENCIES, overridableCron, WEEKDAYS } from '../../src/domain/calendar/frequencies.js';
import { JOB_STATES } from '../../src/domain/job/state.js';
import { type Transition, TRANSITIONS } from '../../src/domain/job/transitions.js';

// The parts of docs/ that are generated from the code; a test checks that they are up to date.

export function transitionTable(): string {
  const rows = Object.entries<Transition>(TRANSITIONS).map(
    ([name, { from, to, fence, meaning }]) =>
      `| ${name} | ${from.join(', ')} | ${to} | ${fence === 1 ? '+1' : '–'} | ${meaning} |`,
  );
  return ['| transition | from | to | fence | when |', '|---|---|---|---|---|', ...rows].join('\n');
}

export function stateTable(): string {
  const rows = Object.entries(JOB_STATES).map(
    ([state, { status, meaning }]) => `| \`${state}\` | ${status} | ${meaning} |`,
  );
  return ['| state | stored status | meaning |', '|---|---|---|', ...rows].join('\n');
}

/** Example arguments of the helpers that take some. */
const EXAMPLES: Record<string, unknown[]> = {
  everyMinute: [5],
  everyXMinutes: [5],
  hourlyAt: [15],
  dailyAt: ['02:30'],
  twiceDaily: [1, 13],
  weeklyOn: [[1, 4], '08:00'],
  monthlyOn: [15, '06:00'],
  twiceMonthly: [1, 16],
  lastDayOfMonth: ['22:00'],
  yearlyOn: [12, 24, '18:00'],
};

export function frequencyTable(): string {
  const rows = Object.entries(FREQUENCIES).flatMap(([name, { cron, meaning }]) => {
    const expression = cron as (...args: unknown[]) => string;
    const row = (args: unknown[]): string => {
      const shown = args
        .map((arg) => JSON.stringify(arg).replaceAll('"', "'").replaceAll(',', ', '))
        .join(', ');
      const { cron: plain, overridable } = overridableCron(expression(...args));
      return `| \`${name}(${shown})\` | \`${plain}\` | ${overridable.join(', ')} | ${meaning} |`;
    };
    const example = EXAMPLES[name];
    if (example === undefined) return [row([])];
    return expression.length === 0 ? [row([]), row(example)] : [row(example)];
  });
  const weekdays = Object.entries(WEEKDAYS).map(
    ([name, days]) =>
      `| \`${name}()\` | \`0 0 * * ${days.join(',')}\` | minute, hour | a constraint; alone, at midnight |`,
  );
  return ['| helper | cron | replaceable | meaning |', '|---|---|---|---|', ...rows, ...weekdays].join('\n');
}

/** A table of the properties of an interface with their TSDoc. */
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
        `${interfaceName}.${member.name.getText()} needs a TSDoc comment with its unit and default`,
      );
    return `| \`${member.name.getText().replaceAll("'", '')}\` | \`${(member.type?.getText() ?? '').replaceAll('|', '\\|').replace(/\s+/g, ' ')}\` | ${text.replace(/\s+/g, ' ')} |`;
  });
  return [`| ${heading} | type | meaning |`, '|---|---|---|', ...rows].join('\n');
}

/** Replaces the text between the markers `<!-- name -->` and `<!-- /name -->` of a page. */
export function fill(page: string, name: string, content: string): string {
  const markers = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*?(<!-- /${name} -->)`);
  if (!markers.test(page)) throw new Error(`the page has no markers <!-- ${name} --> and <!-- /${name} -->`);
  return page.replace(markers, (_, start: string, end: string) => `${start}\n${content}\n\n${end}`);
}

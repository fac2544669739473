// Compares docs/features.md with the tests: a feature is done when a test has its id as a tag at the end of the title.
// With --fix, the column "shown by" is rewritten.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const KNOWN_IDS = new Set([
  ...numbered('C', 14),
  ...numbered('J', 22),
  ...numbered('Y', 12),
  ...numbered('F', 9),
  ...numbered('D', 14),
  ...numbered('B', 42),
]);
const STATES = new Set(['done', 'open']);

export interface TestFile {
  /** Relative to `test/`, with forward slashes. */
  path: string;
  source: string;
}

interface Row {
  id: string;
  state: string;
  shownBy: string[];
}

/** Returns one sentence per problem; none if the page and the tests agree. */
export function checkFeatures(featuresMarkdown: string, tests: readonly TestFile[]): string[] {
  const rows = featuresMarkdown.split('\n').flatMap((line) => parseRow(line) ?? []);
  const listed = rows.map((row) => row.id);
  const filesById = findTags(tests);
  const filesWith = (id: string): string[] => filesById.get(id) ?? [];

  const missing = [...KNOWN_IDS].filter((id) => !listed.includes(id));
  const unknown = listed.filter((id) => !KNOWN_IDS.has(id));
  const repeated = new Set(listed.filter((id, index) => listed.indexOf(id) !== index));
  const wrongState = rows.filter((row) => !STATES.has(row.state));
  const untested = rows.filter((row) => row.state === 'done' && filesWith(row.id).length === 0);
  const unknownTags = [...filesById.keys()].filter((id) => !KNOWN_IDS.has(id));
  const wrongFiles = rows.flatMap(({ id, shownBy }) =>
    shownBy.filter((file) => !filesWith(id).includes(file)).map((file) => ({ id, file })),
  );

  return [
    ...missing.map((id) => `${id}: has no row`),
    ...unknown.map((id) => `${id}: there is no such feature`),
    ...[...repeated].map((id) => `${id}: has more than one row`),
    ...wrongState.map(({ id, state }) => `${id}: its state is "${state}", expected "done" or "open"`),
    ...untested.map(({ id }) => `${id}: is marked done, but no test title ends with [${id}]`),
    ...unknownTags.map((id) => `${id}: is the tag of a test, but there is no such feature`),
    ...wrongFiles.map(
      ({ id, file }) => `${id}: ${file} has no test tagged [${id}] (npm run check:features -- --fix)`,
    ),
  ];
}

/** Returns the page with every file that has a test with the row's tag in the column "shown by", integration tests first. */
export function fixShownBy(featuresMarkdown: string, tests: readonly TestFile[]): string {
  const filesById = findTags(tests);
  return featuresMarkdown
    .split('\n')
    .map((line) => {
      const row = parseRow(line);
      if (row === undefined) return line;
      const files = row.state === 'done' ? (filesById.get(row.id) ?? []) : [];
      const cells = splitCells(line).slice(0, 4);
      return [...cells, ` ${files.map((file) => `\`${file}\``).join(', ')} `, '']
        .join('|')
        .replace('|  |', '| |');
    })
    .join('\n');
}

function numbered(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

function parseRow(line: string): Row | undefined {
  const [, id, , state, shownBy = ''] = splitCells(line).map((cell) => cell.trim());
  if (id === undefined || state === undefined || !/^[A-Z]\d+$/.test(id)) return undefined;
  return { id, state, shownBy: [...shownBy.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file) };
}

/** A pipe inside a cell is written \|. */
function splitCells(line: string): string[] {
  return line.split(/(?<!\\)\|/);
}

/** The files that have a test with each tag, in alphabetical order: `integration/` comes before `unit/`. */
function findTags(tests: readonly TestFile[]): Map<string, string[]> {
  const files = new Map<string, Set<string>>();
  for (const { path: file, source } of [...tests].sort((a, b) => (a.path < b.path ? -1 : 1)))
    for (const id of findTagsIn(source)) files.set(id, (files.get(id) ?? new Set()).add(file));
  return new Map([...files].map(([id, set]) => [id, [...set]]));
}

/** The tags at the ends of titles: `'… [C2] [B1]'`. A skipped test does not count. */
function findTagsIn(source: string): string[] {
  const titles = source.matchAll(
    /\b(?:describe|context|it|specify)(?:\.only)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g,
  );
  return [...titles].flatMap(([, , title = '']) => {
    const [tags = ''] = /(?: \[[A-Z]\d+\])+$/.exec(title) ?? [];
    return [...tags.matchAll(/[A-Z]\d+/g)].map(([id]) => id);
  });
}

function main(): void {
  const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
  const page = path.join(root, 'docs', 'features.md');
  const features = readFileSync(page, 'utf8');
  const tests = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => ({
      path: file.split(path.sep).join('/'),
      source: readFileSync(path.join(root, 'test', file), 'utf8'),
    }));

  if (process.argv.includes('--fix')) {
    writeFileSync(page, fixShownBy(features, tests));
    return;
  }
  const problems = checkFeatures(features, tests);
  for (const problem of problems) console.error(`docs/features.md: ${problem}`);
  if (problems.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();

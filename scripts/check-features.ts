// Compares docs/features.md with the titles of the tests: what is called done has to be shown by a test.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const KNOWN_IDS = new Set([
  ...numbered('C', 14),
  ...numbered('J', 22),
  ...numbered('Y', 12),
  ...numbered('F', 9),
  ...numbered('D', 14),
  ...numbered('B', 20),
]);
const STATES = new Set(['done', 'open']);

interface Row {
  id: string;
  state: string;
}

/** All faults found, one sentence each; none when the page and the tests agree. */
export function checkFeatures(featuresMarkdown: string, testSources: string[]): string[] {
  const rows = readRows(featuresMarkdown);
  const listed = rows.map((row) => row.id);
  const shown = new Set(testSources.flatMap(idsInTitles));

  const missing = [...KNOWN_IDS].filter((id) => !listed.includes(id));
  const unknown = listed.filter((id) => !KNOWN_IDS.has(id));
  const repeated = new Set(listed.filter((id, index) => listed.indexOf(id) !== index));
  const stateless = rows.filter((row) => !STATES.has(row.state));
  const unshown = rows.filter((row) => row.state === 'done' && !shown.has(row.id));
  const untracked = [...shown].filter((id) => !KNOWN_IDS.has(id));

  return [
    ...missing.map((id) => `${id}: has no row`),
    ...unknown.map((id) => `${id}: is not a feature that exists`),
    ...[...repeated].map((id) => `${id}: has more than one row`),
    ...stateless.map(({ id, state }) => `${id}: its state is "${state}", expected "done" or "open"`),
    ...unshown.map(({ id }) => `${id}: is called done, but no test title names it`),
    ...untracked.map((id) => `${id}: is named by a test title, but is not a feature that exists`),
  ];
}

function numbered(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);
}

function readRows(markdown: string): Row[] {
  return markdown.split('\n').flatMap((line) => {
    // A pipe inside a cell is written \|.
    const [, id, , state] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    return id !== undefined && state !== undefined && /^[A-Z]\d+$/.test(id) ? [{ id, state }] : [];
  });
}

/** The ids at the start of titles, several in a row; a skipped test shows nothing. */
function idsInTitles(source: string): string[] {
  const titles = source.matchAll(
    /\b(?:describe|context|it|specify)(?:\.only)?\(\s*(['"`])((?:[A-Z]\d+[ ,]+)+)/g,
  );
  return [...titles].flatMap(([, , ids = '']) => ids.split(/[ ,]+/).filter((id) => id !== ''));
}

function main(): void {
  const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
  const features = readFileSync(path.join(root, 'docs', 'features.md'), 'utf8');
  const tests = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => readFileSync(path.join(root, 'test', file), 'utf8'));

  const faults = checkFeatures(features, tests);
  for (const fault of faults) console.error(`docs/features.md: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();

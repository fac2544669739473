import { readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { DEFAULTS } from '../../src/config/options.js';

const ROOT = new URL('../../', import.meta.url);

export function read(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** Merge keys (`<<`) are what compose files share their parts by. */
export function readYaml(path: string): unknown {
  return parse(read(path), { merge: true });
}

export function readAllYaml(path: string): unknown[] {
  return parseAllDocuments(read(path)).map((document) => document.toJS() as unknown);
}

/** The variables that a worker reads, as .env.example lists them, those of its HTTP server, and those of node itself. */
export const KNOWN_VARIABLES = new Set([
  ...[...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name = '']) => name),
  ...['HTTP_HOST', 'HTTP_PORT', 'HTTP_TOKEN', 'HTTP_TOKEN_FILE', 'HTTP_READ_TOKEN', 'HTTP_READ_TOKEN_FILE'],
  ...['NODE_ENV', 'NODE_OPTIONS'],
]);

/** Seconds that a supervisor has to wait: the worker's own grace, a last heartbeat, connections to close. */
export function leastPatience(shutdownGrace: string | number = DEFAULTS.shutdownGrace / 1000): number {
  return Number.parseInt(String(shutdownGrace), 10) + 15;
}

export const PORT = '8080';

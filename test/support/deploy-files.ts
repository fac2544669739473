import { readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';
import { DEFAULTS } from '../../src/config/options.js';

const ROOT = new URL('../../', import.meta.url);

export function read(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** With merge keys (`<<`), which the compose files use. */
export function readYaml(path: string): unknown {
  return parse(read(path), { merge: true });
}

export function readAllYaml(path: string): unknown[] {
  return parseAllDocuments(read(path)).map((document) => document.toJS() as unknown);
}

/** The variables in .env.example, those of the HTTP server, and those of node itself. */
export const KNOWN_VARIABLES = new Set([
  ...[...read('.env.example').matchAll(/^#([A-Z_]+)=/gm)].map(([, name = '']) => name),
  ...['HTTP_HOST', 'HTTP_PORT', 'HTTP_TOKEN', 'HTTP_TOKEN_FILE', 'HTTP_READ_TOKEN', 'HTTP_READ_TOKEN_FILE'],
  ...['NODE_ENV', 'NODE_OPTIONS'],
]);

/** Seconds that a supervisor must wait before it kills a worker: its shutdown grace, plus time for the last heartbeat and for closing connections. */
export function minStopTimeout(shutdownGrace: string | number = DEFAULTS.shutdownGrace / 1000): number {
  return Number.parseInt(String(shutdownGrace), 10) + 15;
}

export const PORT = '8080';

import { ROUTES } from '../../src/http/api.js';
import { createDocument } from '../../src/http/openapi.js';

// The table of the HTTP API, from the document that a worker serves.

interface Described {
  operationId: string;
  summary: string;
  'x-role'?: string;
}

export function routeTable(): string {
  const { paths } = createDocument(ROUTES) as { paths: Record<string, Record<string, Described>> };
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { operationId, summary, 'x-role': role = 'none' }]) =>
        `| \`${method.toUpperCase()} ${path}\` | ${role} | \`${operationId}\` | ${summary} |`,
    ),
  );
  return ['| route | role | operation | what it does |', '|---|---|---|---|', ...rows].join('\n');
}

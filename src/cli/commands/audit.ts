import type { AuditFilterOptions } from '../../config/query-options.js';
import type { AuditView } from '../../operations/audit.js';
import type { CommandSpec } from '../command.js';
import { styled, type Span } from '../styled.js';
import { table, type Column } from '../table.js';
import { instant } from '../times.js';
import { PAGE, page } from './job-filter.js';
import { more } from './jobs-view.js';

const COLUMNS: readonly Column<AuditView>[] = [
  { title: 'when', cell: ({ at }) => instant(at), keep: true },
  { title: 'who', cell: ({ who }) => who, keep: true },
  { title: 'action', cell: actionSpan },
  { title: 'target', cell: ({ target }) => target ?? '' },
  { title: 'filter', cell: ({ filter }) => wordsOf(filter) },
  { title: 'counts', cell: ({ counts }) => wordsOf(counts) },
];

export const auditList: CommandSpec = {
  name: 'audit list',
  summary: 'List who changed what, over HTTP or with this command, the newest first',
  options: [
    { flags: '--target <id>', help: 'changes of this job or schedule, where it was named' },
    { flags: '--who <name>', help: 'changes of this person or token, such as cli:ada@host' },
    ...PAGE,
  ],
  examples: ['audit list --target 66b0c1d2e3f4a5b6c7d8e9f0', 'audit list --who cli:ada@host --json'],
  async run(context) {
    const { given } = context;
    const filter: AuditFilterOptions = given.picked({ target: 'target', who: 'who' });
    const found = await (await context.scheduler()).operations.listAudit({ ...filter, ...page(given) });
    return {
      data: found,
      lines: ({ width }) =>
        found.entries.length === 0
          ? ['No entries.']
          : [...table(COLUMNS, found.entries, width), ...more(found.next)],
    };
  },
};

function actionSpan({ action }: AuditView): Span {
  if (action.endsWith(':attempted')) return styled('dim', action);
  return action.endsWith(':refused') ? styled('yellow', action) : action;
}

/** `queue=mail status=FAILED`. */
function wordsOf(details: Readonly<Record<string, string | number>> | null): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

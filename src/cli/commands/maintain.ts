import type { AuditFilterOptions } from '../../config/query-options.js';
import { duration } from '../../domain/validation.js';
import type { AuditView } from '../../operations/audit.js';
import { EXIT } from '../../process/exit.js';
import { option } from '../arguments.js';
import { type CommandSpec, message } from '../command.js';
import { counted, instant, plural, formatDuration } from '../terminal/format.js';
import { type Span, styled } from '../terminal/styled.js';
import { type Column, table } from '../terminal/table.js';
import { page, PAGE, YES } from './filters.js';
import { nextPageHint } from './job-views.js';

export const prune: CommandSpec = {
  name: 'prune',
  summary: 'Remove finished jobs past their retention, or with --older-than all stale jobs of that age',
  options: [
    option(
      '--older-than <duration>',
      'remove finished jobs, jobs that no worker has a handler for and jobs with an expired lock if older than this',
      duration(),
    ),
    option('--dry-run', 'only count'),
    option('--handlers <module>', 'module whose task types also count as having a handler'),
    YES,
  ],
  examples: ['prune --yes', 'prune --older-than 30d --dry-run'],
  async run(context) {
    const { args, clock } = context;
    const scheduler = await context.withDefinitions();
    const age = args.number('olderThan');
    const counts = await scheduler.operations.countPrunable(age);
    const jobs = listJobs(counts, counted);
    const condition = age === undefined ? 'past their retention' : `older than ${formatDuration(age)}`;
    if (args.flag('dryRun')) return message({ removable: counts }, `Would remove ${jobs}, ${condition}.`);
    const total = counts.finished.count + counts.orphans.count + counts.expired.count;
    const nothing = { finished: 0, orphans: 0, expired: 0 };
    if (total === 0) return message({ removed: nothing }, `Nothing to remove ${condition}.`);
    if (!(await context.confirm(`This will remove ${jobs}, ${condition}.`)))
      return message({ removed: nothing, isAborted: true }, 'Nothing was removed.', EXIT.failure);

    const removed = await context.change({
      action: 'prune',
      before: { filter: { olderThan: age === undefined ? 'retention' : String(age) } },
      change: (writable) => context.progress('pruning').during(clock, writable.prune(age)),
      after: ({ finished, orphans, expired }) => ({ counts: { finished, orphans, expired } }),
    });
    return message({ removed }, `Removed ${listJobs(removed, plural)}.`);
  },
};

function listJobs<C>(
  { finished, orphans, expired }: Record<'finished' | 'orphans' | 'expired', C>,
  count: (value: C, noun: string) => string,
): string {
  return `${count(finished, 'finished job')}, ${count(orphans, 'job')} without a handler and ${count(expired, 'job')} with an expired lock`;
}

const AUDIT_COLUMNS: readonly Column<AuditView>[] = [
  { title: 'when', cell: ({ at }) => instant(at), keep: true },
  { title: 'who', cell: ({ who }) => who, keep: true },
  { title: 'action', cell: actionSpan },
  { title: 'target', cell: ({ target }) => target ?? '' },
  { title: 'filter', cell: ({ filter }) => formatDetails(filter) },
  { title: 'counts', cell: ({ counts }) => formatDetails(counts) },
];

export const auditList: CommandSpec = {
  name: 'audit list',
  summary: 'List who changed what over HTTP or with this command, newest first',
  options: [
    option('--target <id>', 'changes to this job or schedule, if made by id'),
    option('--who <name>', 'changes by this user or token, such as cli:ada@host'),
    ...PAGE,
  ],
  examples: ['audit list --target 66b0c1d2e3f4a5b6c7d8e9f0', 'audit list --who cli:ada@host --json'],
  async run(context) {
    const { args } = context;
    const filter: AuditFilterOptions = args.pick('target', 'who');
    const found = await (await context.operations()).listAudit({ ...filter, ...page(args) });
    return {
      data: found,
      lines: ({ width }) =>
        found.items.length === 0
          ? ['No entries.']
          : [...table(AUDIT_COLUMNS, found.items, width), ...nextPageHint(found.next)],
    };
  },
};

function actionSpan({ action }: AuditView): Span {
  if (action.endsWith(':attempted')) return styled('dim', action);
  return action.endsWith(':refused') ? styled('yellow', action) : action;
}

/** `queue=mail state=failed`. */
function formatDetails(details: Readonly<Record<string, string | number>> | null): string {
  return Object.entries(details ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

import type { JobFilterOptions, PageOptions } from '../../config/query-options.js';
import { JOB_STATUSES } from '../../domain/job.js';
import type { OptionSpec } from '../command.js';
import type { Given } from '../given.js';
import { oneOf, wholeNumber } from '../readers.js';

/** Which jobs, all but their status. */
export const JOB_FILTER: readonly OptionSpec[] = [
  { flags: '--queue <name>', help: 'in this queue' },
  { flags: '--type <taskType>', help: 'of this task type' },
  { flags: '--schedule <id>', help: 'made by this schedule' },
  { flags: '--user <id>', help: 'of schedules of this user' },
  { flags: '--prefix <text>', help: 'whose ids begin with this' },
];

export const STATUS_FILTER: OptionSpec = {
  flags: '--status <status>',
  help: `with this status: ${JOB_STATUSES.join(', ')}`,
  read: oneOf(JOB_STATUSES),
};

export const PAGE: readonly OptionSpec[] = [
  { flags: '--limit <n>', help: 'at most this many, up to 200 (default: 20)', read: wholeNumber(1, 200) },
  { flags: '--after <cursor>', help: 'the page after the one that ended with this' },
];

export const YES: OptionSpec = { flags: '--yes', help: 'do not ask' };

/** Checked by the operation itself. */
export function jobFilter(given: Given): JobFilterOptions {
  return given.picked({
    status: 'status',
    queue: 'queue',
    taskType: 'type',
    schedule: 'schedule',
    userId: 'user',
    idPrefix: 'prefix',
  });
}

export function page(given: Given): PageOptions {
  return given.picked({ limit: 'limit', after: 'after' });
}

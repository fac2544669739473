import {
  type JobFilterOptions,
  jobFilterShapes,
  type PageOptions,
  pageShapes,
} from '../../config/query-options.js';
import { JOB_STATUSES } from '../../domain/job/job.js';
import { type Arguments, reader } from '../arguments.js';
import type { OptionSpec } from '../command.js';

/** Filters of jobs, except for the status. */
export const JOB_FILTER: readonly OptionSpec[] = [
  { flags: '--queue <name>', help: 'in this queue' },
  { flags: '--type <taskType>', help: 'of this task type' },
  { flags: '--schedule <id>', help: 'of this schedule' },
  { flags: '--user <id>', help: 'of the schedules of this user' },
  { flags: '--prefix <text>', help: 'whose ids start with this' },
];

export const STATUS_FILTER: OptionSpec = {
  flags: '--status <status>',
  help: `with this status: ${JOB_STATUSES.join(', ')}`,
  read: reader(jobFilterShapes.status),
};

export const PAGE: readonly OptionSpec[] = [
  {
    flags: '--limit <n>',
    help: 'at most this many, up to 200 (default: 20)',
    read: reader(pageShapes.limit),
  },
  { flags: '--after <cursor>', help: 'the next page: the value that the previous page printed' },
];

export const YES: OptionSpec = { flags: '--yes', help: 'do not ask' };

/** The operation validates it. */
export function jobFilter(args: Arguments): JobFilterOptions {
  return args.picked({
    status: 'status',
    queue: 'queue',
    taskType: 'type',
    schedule: 'schedule',
    userId: 'user',
    idPrefix: 'prefix',
  });
}

export function page(args: Arguments): PageOptions {
  return args.picked({ limit: 'limit', after: 'after' });
}

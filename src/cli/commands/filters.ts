import {
  type JobFilterOptions,
  jobFilterShapes,
  type PageOptions,
  pageShapes,
} from '../../config/query-options.js';
import { STATE_NAMES } from '../../domain/job/state.js';
import { type Arguments, option } from '../arguments.js';

/** Filters of jobs, except for the state. */
export const JOB_FILTER = [
  option('--queue <name>', 'in this queue'),
  option('--type <taskType>', 'of this task type'),
  option('--schedule <id>', 'of this schedule'),
  option('--user <id>', 'of this user'),
  option('--tag <tag>', 'with this tag'),
  option('--id-prefix <text>', 'whose ids start with this'),
];

export const STATE_FILTER = option(
  '--state <state>',
  `in this state: ${STATE_NAMES.join(', ')}`,
  jobFilterShapes.state,
);

export const PAGE = [
  option('--limit <n>', 'at most this many, up to 200 (default: 20)', pageShapes.limit),
  option('--after <cursor>', 'the next page: the value that the previous page printed'),
];

export const YES = option('--yes', 'do not ask');

/** Not validated: the operations do that. */
export function jobFilter(args: Arguments): JobFilterOptions {
  return {
    ...args.pick('state', 'queue', 'schedule', 'tag', 'idPrefix'),
    ...args.pickAs({ taskType: 'type', userId: 'user' }),
  };
}

export function page(args: Arguments): PageOptions {
  return args.pick('limit', 'after');
}

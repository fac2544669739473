import type { CommandSpec } from './command.js';
import { auditList } from './commands/audit.js';
import { backfillCommand } from './commands/backfill.js';
import { changeCommands, deadRetry } from './commands/change-jobs.js';
import { definitionCommands } from './commands/definitions.js';
import { dev } from './commands/dev.js';
import { dispatch } from './commands/dispatch.js';
import { executionCommands } from './commands/executions.js';
import { deadCommands, jobCommands } from './commands/jobs.js';
import { prune } from './commands/prune.js';
import { scheduleCommands } from './commands/schedules.js';
import { scheduleChanges } from './commands/schedules-change.js';
import { statusCommands } from './commands/status.js';
import { tail } from './commands/tail.js';
import { top } from './commands/top.js';
import { workCommands } from './commands/work.js';

/** Words that commands stand under. */
export const GROUPS: Readonly<Record<string, string>> = {
  jobs: 'List, explain and change jobs',
  schedules: 'List, change and trigger schedules',
  queues: 'List queues',
  workers: 'List worker processes',
  executions: 'List attempts of jobs',
  dead: 'List and retry jobs that failed for good',
  audit: 'List who changed what',
};

/** Every command there is. */
export const COMMANDS: readonly CommandSpec[] = [
  ...workCommands,
  dev,
  ...statusCommands,
  top,
  dispatch,
  ...jobCommands,
  ...changeCommands,
  tail,
  ...deadCommands,
  deadRetry,
  ...scheduleCommands,
  ...scheduleChanges,
  backfillCommand,
  ...definitionCommands,
  ...executionCommands,
  prune,
  auditList,
];

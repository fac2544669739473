import type { CommandSpec } from '../command.js';
import { changeCommands, deadRetry, emptyQueue, reschedule } from './change-jobs.js';
import { backfillCommand, scheduleChanges } from './change-schedules.js';
import { definitionCommands } from './definitions.js';
import { dev } from './dev.js';
import { dispatch } from './dispatch.js';
import { tail } from './follow-jobs.js';
import { deadList, executionCommands, jobCommands } from './jobs.js';
import { auditList, prune } from './maintain.js';
import { scheduleCommands } from './schedules.js';
import { statusCommands } from './status.js';
import { top } from './top.js';
import { workCommands } from './work.js';

/** The first words of commands with two words. */
export const GROUPS: Readonly<Record<string, string>> = {
  jobs: 'List, explain and change jobs',
  schedules: 'List, change and trigger schedules',
  queues: 'List and empty queues',
  workers: 'List and drain worker processes',
  executions: 'List attempts of jobs',
  dead: 'List and retry failed jobs',
  audit: 'List who changed what',
};

export const COMMANDS: readonly CommandSpec[] = [
  ...workCommands,
  dev,
  ...statusCommands,
  top,
  dispatch,
  ...jobCommands,
  ...changeCommands,
  reschedule,
  emptyQueue,
  tail,
  deadList,
  deadRetry,
  ...scheduleCommands,
  ...scheduleChanges,
  backfillCommand,
  ...definitionCommands,
  ...executionCommands,
  prune,
  auditList,
];

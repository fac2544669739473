import type { Operations } from '../operations/operations.js';
import type { Scheduler } from '../scheduler.js';

/**
 * What a command may do without being written down: look. The rest of a Scheduler is only given to what goes through
 * `Context.change`, so that no command can change something and forget to say who did.
 */
export type Reading = Pick<
  Scheduler,
  'getExecutionOrder' | 'getExecutions' | 'getJob' | 'getSchedule' | 'getSkips' | 'pageSchedules'
> & {
  operations: Pick<
    Operations,
    | ('configuration' | 'countMatching' | 'countPrunable' | 'diffSchedules' | 'doctor' | 'explainJob')
    | ('listAudit' | 'listDead' | 'listDefinitions' | 'listExecutions' | 'listJobs' | 'listQueues')
    | ('listWorkers' | 'previewBackfill' | 'showExecution' | 'showJob' | 'status')
  >;
};

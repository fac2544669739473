import { findRuns } from './active-runs.js';
import { addAudit, listAudit } from './audit.js';
import { findBacklog } from './backlog.js';
import { markBegun } from './begin.js';
import { cancel, findCancelRequests } from './cancel.js';
import { claimBatch, claimOne, findClaimed, findDue } from './claim.js';
import { decideSchedules, dropOwed } from './decide-schedules.js';
import { findDueHeads, findWaitingQueues } from './due-heads.js';
import { findDueSchedules, findOwingSchedules, nextScheduleAt } from './due-schedules.js';
import { enqueue, enqueueMany } from './enqueue.js';
import { logExecutions } from './executions.js';
import { findExecutions, findJob } from './find.js';
import { giveBack, giveBackByToken } from './give-back.js';
import { findListedTaskTypes, findLiveTaskTypes, findWorkers, saveHeartbeat } from './heartbeat.js';
import { hold, unhold } from './hold.js';
import { inspectCollections, inspectServer, refusedStream } from './inspect.js';
import { findExecution, listExecutions } from './list-executions.js';
import { countJobs, listJobs } from './list-jobs.js';
import type { Collections } from './models.js';
import { move } from './move.js';
import { acquireLock, findLock, releaseLock } from './named-lock.js';
import { nextDueAt } from './next-due.js';
import { saveProgress } from './progress.js';
import {
  countExpiredBefore,
  countFinishedBefore,
  countOrphansBefore,
  pruneExpired,
  pruneFinished,
  pruneOrphans,
} from './prune.js';
import { countByQueue, countDue, estimateJobs } from './queue-counts.js';
import { countRecentOutcomes } from './recent-outcomes.js';
import { findExpired, recover } from './recover.js';
import { renew } from './renew.js';
import { retry } from './retry.js';
import {
  changeSchedule,
  deleteSchedule,
  findForeignDefinitions,
  findSchedule,
  findSchedules,
  insertSchedule,
  listSchedules,
} from './schedules.js';
import { findSettled, settle } from './settle.js';
import { findSkips, findSkipsAt, recordSkips } from './skips.js';
import { findLockedSuspects } from './suspects.js';
import { findDisabledSchedules, findLateSchedules, findLongOwing } from './troubled-schedules.js';
import { watch } from './watch.js';

const OPERATIONS = {
  acquireLock,
  addAudit,
  cancel,
  changeSchedule,
  claimBatch,
  claimOne,
  countByQueue,
  countDue,
  countJobs,
  countRecentOutcomes,
  decideSchedules,
  deleteSchedule,
  dropOwed,
  enqueue,
  enqueueMany,
  estimateJobs,
  findBacklog,
  findCancelRequests,
  findClaimed,
  findDisabledSchedules,
  findDue,
  findDueHeads,
  findDueSchedules,
  findExecution,
  findExecutions,
  findExpired,
  findForeignDefinitions,
  findJob,
  findLateSchedules,
  findListedTaskTypes,
  findLiveTaskTypes,
  findLock,
  findLockedSuspects,
  findLongOwing,
  findOwingSchedules,
  findRuns,
  findSchedule,
  findSchedules,
  findSettled,
  findSkips,
  findSkipsAt,
  findWaitingQueues,
  findWorkers,
  giveBack,
  giveBackByToken,
  hold,
  insertSchedule,
  inspectCollections,
  inspectServer,
  listAudit,
  listExecutions,
  listJobs,
  listSchedules,
  logExecutions,
  markBegun,
  move,
  nextDueAt,
  nextScheduleAt,
  countExpiredBefore,
  countFinishedBefore,
  countOrphansBefore,
  pruneExpired,
  pruneFinished,
  pruneOrphans,
  recordSkips,
  recover,
  refusedStream,
  releaseLock,
  renew,
  retry,
  saveHeartbeat,
  saveProgress,
  settle,
  unhold,
  watch,
};

type Operations = typeof OPERATIONS;

type Bound<F> = F extends (c: Collections, ...rest: infer A) => infer R ? (...rest: A) => R : never;

/** Every operation on the database, bound to its collections. */
export type Store = { readonly [K in keyof Operations]: Bound<Operations[K]> };

export function createStore(collections: Collections): Store {
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (...rest: unknown[]) =>
      (operation as (c: Collections, ...rest: unknown[]) => unknown)(collections, ...rest),
  ]);
  return Object.fromEntries(bound) as Store;
}

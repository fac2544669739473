import { watchChanges } from './change-stream.js';
import { cancel, findCancelRequests, hold, reschedule, retry, unhold } from './jobs/change.js';
import { claimBatch, claimOne, findClaimed, findDue } from './jobs/claim.js';
import { countByQueue, countDue, estimateJobs, findBacklog } from './jobs/counts.js';
import { findOldestDue, findWaitingQueues, nextDueAt } from './jobs/due.js';
import { enqueue, enqueueMany } from './jobs/enqueue.js';
import {
  countRecentOutcomes,
  findExecution,
  findExecutions,
  listExecutions,
  logExecutions,
} from './jobs/executions.js';
import { findJob, findLockedCrashSuspects, findRunStates } from './jobs/find.js';
import { countJobs, listJobs } from './jobs/list.js';
import {
  countExpiredBefore,
  countFinishedBefore,
  countOrphansBefore,
  pruneExpired,
  pruneFinished,
  pruneOrphans,
} from './jobs/prune.js';
import { findExpired, recover } from './jobs/recover.js';
import { release, releaseByToken } from './jobs/release.js';
import { renew } from './jobs/renew.js';
import { markStarted, saveProgress } from './jobs/running.js';
import { findSettled, settle } from './jobs/settle.js';
import { storeDecisions, removePending } from './schedules/decisions.js';
import {
  findDisabledSchedules,
  findDueSchedules,
  findLateSchedules,
  findLongPending,
  findPendingSchedules,
  nextScheduleAt,
} from './schedules/due.js';
import {
  changeSchedule,
  deleteSchedule,
  findForeignDefinitions,
  findSchedule,
  findSchedules,
  insertSchedule,
  listSchedules,
} from './schedules/schedules.js';
import { findSkips, findSkipsAt, recordSkips } from './schedules/skips.js';
import type { Collections } from './schema/collections.js';
import { inspectCollections, inspectServer, findStreamError } from './schema/inspect.js';
import {
  acquireLock,
  addAudit,
  findListedTaskTypes,
  findLiveTaskTypes,
  findLock,
  findWorkers,
  listAudit,
  releaseLock,
  saveHeartbeat,
} from './system.js';

const OPERATIONS = {
  acquireLock,
  addAudit,
  cancel,
  changeSchedule,
  claimBatch,
  claimOne,
  countByQueue,
  countDue,
  countExpiredBefore,
  countFinishedBefore,
  countJobs,
  countOrphansBefore,
  countRecentOutcomes,
  deleteSchedule,
  enqueue,
  enqueueMany,
  estimateJobs,
  findBacklog,
  findCancelRequests,
  findClaimed,
  findDisabledSchedules,
  findDue,
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
  findLockedCrashSuspects,
  findLongPending,
  findOldestDue,
  findPendingSchedules,
  findRunStates,
  findSchedule,
  findSchedules,
  findSettled,
  findSkips,
  findSkipsAt,
  findWaitingQueues,
  findWorkers,
  hold,
  insertSchedule,
  inspectCollections,
  inspectServer,
  listAudit,
  listExecutions,
  listJobs,
  listSchedules,
  logExecutions,
  markStarted,
  nextDueAt,
  nextScheduleAt,
  pruneExpired,
  pruneFinished,
  pruneOrphans,
  recordSkips,
  recover,
  findStreamError,
  release,
  releaseByToken,
  releaseLock,
  removePending,
  renew,
  reschedule,
  retry,
  saveHeartbeat,
  saveProgress,
  settle,
  storeDecisions,
  unhold,
  watchChanges,
};

type Operations = typeof OPERATIONS;

type Bound<F> = F extends (c: Collections, ...rest: infer A) => infer R ? (...rest: A) => R : never;

/** Every operation on the database, bound to its collections: the only way to reach MongoDB. */
export type Store = { readonly [K in keyof Operations]: Bound<Operations[K]> };

export function createStore(collections: Collections): Store {
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (...rest: unknown[]) =>
      (operation as (c: Collections, ...rest: unknown[]) => unknown)(collections, ...rest),
  ]);
  return Object.fromEntries(bound) as Store;
}

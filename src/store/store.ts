import { findStreamError, watchChanges } from './change-stream.js';
import {
  cancel,
  cancelUnclaimed,
  findCancelRequests,
  hold,
  keepCancelled,
  reschedule,
  retry,
  unhold,
} from './jobs/change.js';
import { claimBatch, claimOne, findClaimed, findDue } from './jobs/claim.js';
import { countByQueue, countDue, countLater, estimateJobs, findBacklog } from './jobs/counts.js';
import { deleteJob, deleteUnchanged } from './jobs/delete.js';
import * as dueJobs from './jobs/due.js';
import * as enqueue from './jobs/enqueue.js';
import * as executions from './jobs/executions.js';
import * as find from './jobs/find.js';
import * as hanging from './jobs/hanging.js';
import { countJobs, listJobs } from './jobs/list.js';
import * as prune from './jobs/prune.js';
import * as recover from './jobs/recover.js';
import * as release from './jobs/release.js';
import * as renew from './jobs/renew.js';
import * as running from './jobs/running.js';
import * as settle from './jobs/settle.js';
import * as waiting from './jobs/waiting.js';
import * as decisions from './schedules/decisions.js';
import * as dueSchedules from './schedules/due.js';
import * as schedules from './schedules/schedules.js';
import * as skips from './schedules/skips.js';
import type { Collections } from './schema/collections.js';
import { assertSupported, readInstallation } from './schema/installation.js';
import { inspectCollections, inspectServer, usesMongos } from './schema/inspect.js';
import * as system from './system.js';

const OPERATIONS = {
  ...{ findStreamError, watchChanges },
  ...{ cancel, cancelUnclaimed, findCancelRequests, hold, keepCancelled, reschedule, retry, unhold },
  ...{ claimBatch, claimOne, findClaimed, findDue },
  ...{ countByQueue, countDue, countLater, estimateJobs, findBacklog },
  ...{ deleteJob, deleteUnchanged },
  ...dueJobs,
  ...enqueue,
  ...executions,
  ...find,
  ...hanging,
  ...{ countJobs, listJobs },
  ...prune,
  ...recover,
  ...release,
  ...renew,
  ...running,
  ...settle,
  ...waiting,
  ...decisions,
  ...dueSchedules,
  ...schedules,
  ...skips,
  ...{ inspectCollections, inspectServer, usesMongos },
  ...{ assertSupported, readInstallation },
  ...system,
} satisfies Record<string, (c: Collections, ...rest: never[]) => unknown>;

type Operations = typeof OPERATIONS;

type Bound<F> = F extends (c: Collections, ...rest: infer A) => infer R ? (...rest: A) => R : never;

/** Every operation on the database, bound to its collections: the only way to reach MongoDB. */
export type Store = { readonly [K in keyof Operations]: Bound<Operations[K]> };

export function createStore(collections: Collections): Store {
  const bound = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (...rest: never[]) => (operation as (c: Collections, ...rest: never[]) => unknown)(collections, ...rest),
  ]);
  return Object.fromEntries(bound) as Store;
}

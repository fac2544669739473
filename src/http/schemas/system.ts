import { type AuditFilterOptions, auditQueryShape, type PageOptions } from '../../config/query-options.js';
import type { Duration } from '../../domain/duration.js';
import type { LifecycleState } from '../../domain/events.js';
import { type JobState, STATE_NAMES } from '../../domain/job/state.js';
import * as v from '../../domain/validation.js';
import type { PruneCounts } from '../../maintenance/pruner.js';
import type { AuditView } from '../../operations/audit.js';
import type { ConfigurationView } from '../../operations/definitions.js';
import type { Finding } from '../../operations/doctor/doctor.js';
import type { WorkerView } from '../../operations/lists.js';
import type { Collected } from '../../operations/operations.js';
import type { QueueView, StatusView, Throughput } from '../../operations/status.js';
import type { Count } from '../../store/jobs/counts.js';
import * as s from './schema.js';

export const state = s.enumOf<LifecycleState>('Stopped', 'Starting', 'Running', 'Stopping', 'Error');

const byState = s.response<Record<JobState, Count>>(
  Object.fromEntries(STATE_NAMES.map((one) => [one, s.count])) as Record<JobState, s.SchemaOf<Count>>,
);

const worker = s.response<WorkerView>({
  id: s.string(),
  state,
  host: s.string(),
  pid: s.number(),
  version: s.string(),
  queues: s.list(s.string()),
  taskTypes: s.list(s.string()),
  concurrency: s.number(),
  running: s.number(),
  queueSlots: s.objectList<WorkerView['queueSlots'][number]>({
    queue: s.string(),
    slots: s.number('how many slots jobs of this queue may occupy in this process'),
    taken: s.number(),
  }),
  isDraining: s.boolean('true: it claims no jobs; it is drained when `running` is 0'),
  startedAt: s.date(),
  heartbeatAt: s.date(),
  clockError: s.nullable(s.number('milliseconds')),
  warnings: s.list(s.string()),
  isLive: s.boolean(),
  silentFor: s.number('milliseconds'),
});

const queue = s.response<QueueView>({
  queue: s.string(),
  counts: byState,
  oldestDueAt: s.nullable(s.date()),
  oldestWaiting: s.nullable(s.number('milliseconds')),
  perMinute: s.number(),
  drainIn: s.nullable(s.number('milliseconds')),
  workers: s.number('live workers that serve this queue'),
});

export const statusView = s.response<StatusView>({
  at: s.date(),
  stored: s.number('all jobs; an estimate if there are more than ten thousand in one state'),
  totals: byState,
  queues: s.list(queue),
  throughput: s.response<Throughput>({
    window: s.number('milliseconds'),
    attempts: s.number(),
    perMinute: s.number(),
    byOutcome: s.dictionary(s.number()),
  }),
  workers: s.list(worker),
  running: s.number(),
  slots: s.number(),
  isComplete: s.boolean(),
});

export const workerParams = s.idParam(v.name, 'of a worker, percent-encoded');
export const workerRequest = s.response<{ id: string }>({ id: s.string() });

export const queuePage = s.page(queue);
export const workerPage = s.page(worker);

export const findings = s.response<{ isWell: boolean; findings: Finding[] }>({
  isWell: s.boolean('true: no finding is an error'),
  findings: s.objectList<Finding>({
    check: s.string(),
    level: s.enumOf('ok', 'warning', 'error'),
    finding: s.string(),
    advice: s.nullable(s.string('what to do')),
  }),
});

export const configuration = s.response<ConfigurationView>({
  version: s.string(),
  workerId: s.string(),
  options: s.openObject<ConfigurationView['options']>('durations in milliseconds'),
  taskTypes: s.list(s.string()),
});

export const auditQuery: s.SchemaOf<AuditFilterOptions & PageOptions> = auditQueryShape.schema;

export const auditPage = s.page(
  s.response<AuditView>({
    id: s.string(),
    at: s.date(),
    who: s.string(),
    action: s.string(),
    target: s.nullable(s.string()),
    filter: s.nullable(s.dictionary(s.string())),
    counts: s.nullable(s.dictionary(s.number())),
    requestId: s.nullable(s.string()),
  }),
);

export interface PruneRequest {
  olderThan?: Duration;
  dryRun?: boolean;
}

export const pruneBody: s.SchemaOf<PruneRequest> = v.object({
  olderThan: v.duration(),
  dryRun: v.described(v.flag, 'true: only count the jobs that would be removed'),
}).schema;

/** Removed jobs. A dry run removes none, and `matching` contains the jobs that would be removed. */
export interface Pruned extends PruneCounts {
  matching: Record<keyof PruneCounts, Count> | null;
}

export const pruned = s.response<Pruned>({
  matching: s.nullableObject<Record<keyof PruneCounts, Count> | null>({
    finished: s.count,
    orphans: s.count,
    expired: s.count,
  }),
  finished: s.number(),
  orphans: s.number('due jobs of task types that no worker has a handler for'),
  expired: s.number('jobs whose lock expired and that no worker recovered'),
});

export const collected = s.response<Collected>({
  created: s.number(),
  jobs: s.objectList<Collected['jobs'][number]>({
    id: s.string(),
    schedule: s.nullable(s.string()),
    scheduledFor: s.nullable(s.date()),
  }),
});

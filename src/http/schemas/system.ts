import { type AuditFilterOptions, auditQueryShape, type PageOptions } from '../../config/query-options.js';
import type { Duration } from '../../domain/duration.js';
import type { LifecycleState } from '../../domain/events.js';
import { JOB_STATUSES, type JobStatus } from '../../domain/job/job.js';
import { described, duration, flag, object } from '../../domain/validation.js';
import type { PruneCounts } from '../../maintenance/pruner.js';
import type { AuditPage, AuditView } from '../../operations/audit.js';
import type { ConfigurationView } from '../../operations/definitions.js';
import type { Finding } from '../../operations/doctor/doctor.js';
import type { WorkerView } from '../../operations/lists.js';
import type { Collected } from '../../operations/operations.js';
import type { QueueView, StatusView, Throughput } from '../../operations/status.js';
import type { Count } from '../../store/jobs/counts.js';
import {
  boolean,
  count,
  date,
  dictionary,
  enumOf,
  list,
  next,
  nullable,
  number,
  openObject,
  response,
  type SchemaOf,
  string,
} from './schema.js';

export const state = enumOf<LifecycleState>('Stopped', 'Starting', 'Running', 'Stopping', 'Error');

const byStatus = response<Record<JobStatus, Count>>(
  Object.fromEntries(JOB_STATUSES.map((one) => [one, count])) as Record<JobStatus, SchemaOf<Count>>,
);

const worker = response<WorkerView>({
  id: string(),
  state,
  host: string(),
  pid: number(),
  version: string(),
  queues: list(string()),
  taskTypes: list(string()),
  concurrency: number(),
  running: number(),
  startedAt: date(),
  heartbeatAt: date(),
  clockError: nullable(number('milliseconds')),
  isLive: boolean(),
  silentFor: number('milliseconds'),
});

const queue = response<QueueView>({
  queue: string(),
  counts: byStatus,
  due: count,
  oldestDueAt: nullable(date()),
  oldestWaiting: nullable(number('milliseconds')),
  perMinute: number(),
  drainIn: nullable(number('milliseconds')),
  workers: number('live workers that serve it'),
});

export const statusView = response<StatusView>({
  at: date(),
  stored: number('all jobs; an estimate above ten thousand jobs of one status'),
  totals: byStatus,
  due: count,
  queues: list(queue),
  throughput: response<Throughput>({
    window: number('milliseconds'),
    attempts: number(),
    perMinute: number(),
    byOutcome: dictionary(number()),
  }),
  workers: list(worker),
  running: number(),
  slots: number(),
  isComplete: boolean(),
});

export const queues = response<{ queues: QueueView[] }>({ queues: list(queue) });
export const workers = response<{ workers: WorkerView[] }>({ workers: list(worker) });

export const findings = response<{ isWell: boolean; findings: Finding[] }>({
  isWell: boolean('no finding is an error'),
  findings: list(
    response<Finding>({
      check: string(),
      level: enumOf('ok', 'warning', 'error'),
      finding: string(),
      advice: nullable(string('what to do')),
    }),
  ),
});

export const configuration = response<ConfigurationView>({
  version: string(),
  workerId: string(),
  options: openObject<ConfigurationView['options']>('durations in milliseconds'),
  taskTypes: list(string()),
});

export const auditQuery: SchemaOf<AuditFilterOptions & PageOptions> = auditQueryShape.schema;

export const auditPage = response<AuditPage>({
  entries: list(
    response<AuditView>({
      id: string(),
      at: date(),
      who: string(),
      action: string(),
      target: nullable(string()),
      filter: nullable(dictionary(string())),
      counts: nullable(dictionary(number())),
      requestId: nullable(string()),
    }),
  ),
  next,
});

export interface PruneRequest {
  olderThan?: Duration;
  dryRun?: boolean;
}

export const pruneBody: SchemaOf<PruneRequest> = object({
  olderThan: duration(),
  dryRun: described(flag, 'true: only count what would be removed'),
}).schema;

/** What was removed. For a dry run, `matching` is what would be. */
export interface Pruned extends PruneCounts {
  matching: Record<keyof PruneCounts, Count> | null;
}

export const pruned = response<Pruned>({
  matching: nullable(
    response<Record<keyof PruneCounts, Count>>({ finished: count, orphans: count, expired: count }),
  ),
  finished: number(),
  orphans: number('due jobs of task types without a handler in any worker'),
  expired: number('jobs whose lock expired and that no worker recovered'),
});

export const collected = response<Collected>({
  created: number(),
  jobs: list(
    response<Collected['jobs'][number]>({
      id: string(),
      schedule: nullable(string()),
      scheduledFor: nullable(date()),
    }),
  ),
});

import { JOB_STATUSES, type JobStatus } from '../../domain/job.js';
import type { LifecycleState } from '../../domain/events.js';
import { LONGEST_JOB_ID } from '../../domain/names.js';
import type { AuditFilterOptions, PageOptions } from '../../config/query-options.js';
import type { PruneCounts } from '../../maintenance/pruner.js';
import type { AuditPage, AuditView } from '../../operations/audit.js';
import type { ConfigurationView } from '../../operations/configuration.js';
import type { Finding } from '../../operations/doctor.js';
import type { Collected } from '../../operations/operations.js';
import type { QueueView, StatusView, Throughput } from '../../operations/status.js';
import type { WorkerView } from '../../operations/workers.js';
import type { Count } from '../../store/list-jobs.js';
import {
  amount,
  answer,
  date,
  dictionary,
  flag,
  free,
  input,
  list,
  nullable,
  oneOf,
  shown,
  text,
  type SchemaOf,
} from './schema.js';
import { count, cursor, duration, limit, name, next } from './values.js';

export const state = oneOf<LifecycleState>('Stopped', 'Starting', 'Running', 'Stopping', 'Error');

const byStatus = answer<Record<JobStatus, Count>>(
  Object.fromEntries(JOB_STATUSES.map((one) => [one, count])) as Record<JobStatus, SchemaOf<Count>>,
);

const worker = answer<WorkerView>({
  id: shown(),
  state,
  host: shown(),
  pid: amount(),
  version: shown(),
  queues: list(shown()),
  taskTypes: list(shown()),
  concurrency: amount(),
  running: amount(),
  startedAt: date(),
  heartbeatAt: date(),
  clockError: nullable(amount('milliseconds')),
  isLive: flag(),
  silentFor: amount('milliseconds'),
});

const queue = answer<QueueView>({
  queue: shown(),
  counts: byStatus,
  due: count,
  oldestDueAt: nullable(date()),
  oldestWaiting: nullable(amount('milliseconds')),
  perMinute: amount(),
  drainIn: nullable(amount('milliseconds')),
  workers: amount('live ones that serve it'),
});

export const statusView = answer<StatusView>({
  at: date(),
  stored: amount('all jobs; past ten thousand of a status, as far as the server knows without counting'),
  totals: byStatus,
  due: count,
  queues: list(queue),
  throughput: answer<Throughput>({
    window: amount('milliseconds'),
    attempts: amount(),
    perMinute: amount(),
    byOutcome: dictionary(amount()),
  }),
  workers: list(worker),
  running: amount(),
  slots: amount(),
  isComplete: flag(),
});

export const queues = answer<{ queues: QueueView[] }>({ queues: list(queue) });
export const workers = answer<{ workers: WorkerView[] }>({ workers: list(worker) });

export const findings = answer<{ isWell: boolean; findings: Finding[] }>({
  isWell: flag('no finding is an error'),
  findings: list(
    answer<Finding>({
      check: shown(),
      level: oneOf('ok', 'warning', 'error'),
      finding: shown(),
      advice: nullable(shown('what to do')),
    }),
  ),
});

export const configuration = answer<ConfigurationView>({
  version: shown(),
  workerId: shown(),
  options: free<ConfigurationView['options']>('durations in milliseconds'),
  taskTypes: list(shown()),
});

export const auditQuery = input<AuditFilterOptions & PageOptions>({
  who: name,
  target: text(LONGEST_JOB_ID, 'the id of the job or schedule that was changed'),
  limit,
  after: cursor,
});

export const auditPage = answer<AuditPage>({
  entries: list(
    answer<AuditView>({
      id: shown(),
      at: date(),
      who: shown(),
      action: shown(),
      target: nullable(shown()),
      filter: nullable(dictionary(shown())),
      counts: nullable(dictionary(amount())),
      requestId: nullable(shown()),
    }),
  ),
  next,
});

export interface PruneRequest {
  olderThan?: number | string;
  dryRun?: boolean;
}

export const pruneBody = input<PruneRequest>({
  olderThan: duration,
  dryRun: flag('true: only say how many it would remove'),
});

/** What was removed, and for a dry run what would be. */
export interface Pruned extends PruneCounts {
  matching: Record<keyof PruneCounts, Count> | null;
}

export const pruned = answer<Pruned>({
  matching: nullable(
    answer<Record<keyof PruneCounts, Count>>({ finished: count, orphans: count, expired: count }),
  ),
  finished: amount(),
  orphans: amount('jobs that were due, of task types nobody has a handler for'),
  expired: amount('jobs whose lock expired, recovered by nobody'),
});

export const emptyBody = input<object>({});
export const collected = answer<Collected>({
  created: amount(),
  jobs: list(
    answer<Collected['jobs'][number]>({
      id: shown(),
      schedule: nullable(shown()),
      scheduledFor: nullable(date()),
    }),
  ),
});

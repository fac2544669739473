export { Scheduler } from './scheduler.js';
export type { AdHoc, AnyPayloads, DispatchArguments, DispatchRequest } from './dispatch/typed-dispatch.js';
export type { WorkerLoad } from './load.js';
export type { StopReport } from './lifetime.js';
export type { PassReport } from './run-once.js';
export { EventChannel, type ChannelListener } from './built-in/event-channel.js';
export type {
  DaemonOptions,
  PassOptions,
  PauseOptions,
  ScheduleQueryOptions,
} from './config/call-options.js';
export type { DispatchOptions } from './config/dispatch-options.js';
export type { HandlerOptions } from './config/handler-options.js';
export type { RetentionOptions, SchedulerOptions } from './config/options.js';
export type { RetryOptions } from './config/retry-options.js';
export type { MisfireOptions, ScheduleOptions } from './config/schedule-options.js';
export type { DispatchResult } from './dispatch/dispatcher.js';
export type { Draft } from './dispatch/draft.js';
export type { JobHandle } from './dispatch/job-handle.js';
export type { JobView } from './dispatch/job-view.js';
export type { Clock } from './domain/clock.js';
export { CancelJob, SnoozeJob } from './domain/control-flow.js';
export type { Duration } from './domain/duration.js';
export { ChronosError, type ErrorCode, type StoredError } from './domain/errors.js';
export type { EventName, LifecycleState, SchedulerEvents } from './domain/events.js';
export type { ExecutionDocument } from './domain/execution.js';
export type { FieldPattern, FieldSchedule } from './domain/field-schedule.js';
export type { Instant } from './domain/instant.js';
export { JOB_STATUSES, type JobStatus } from './domain/job.js';
export type { Rule } from './domain/rule.js';
export type { Misfire, Overlap, SkipDocument, SkipReason } from './domain/schedule.js';
export { TRANSITIONS, type Transition, type TransitionName } from './domain/transitions.js';
export type { PruneCounts } from './maintenance/pruner.js';
export type {
  AuditEntry,
  AuditFilterOptions,
  ExecutionFilterOptions,
  JobFilterOptions,
  PageOptions,
} from './config/query-options.js';
export type { AuditPage, AuditView } from './operations/audit.js';
export type { BulkAction, BulkAnswer, BulkOptions, BulkProgress } from './operations/bulk.js';
export type { ConfigurationView } from './operations/configuration.js';
export type { DefinitionView, ScheduleDifference } from './operations/definitions.js';
export type { Finding } from './operations/doctor.js';
export type { Explanation } from './operations/explain.js';
export type { ExecutionPage, JobPage } from './operations/lists.js';
export type { Collected, Operations } from './operations/operations.js';
export type { BackfillPreview } from './operations/preview-backfill.js';
export type { QueueView, StatusView, Throughput } from './operations/status.js';
export type { ExecutionSummary, ExecutionView, JobDetails, JobSummary } from './operations/views.js';
export type { WorkerView } from './operations/workers.js';
export type { Count } from './store/list-jobs.js';
export type { BoundDraft } from './schedules/bound-draft.js';
export type { ScheduleBuilder } from './schedules/builder.js';
export type { DaemonReport } from './schedules/daemon.js';
export type { Definition } from './schedules/definition.js';
export type { NewSchedule } from './schedules/given-schedule.js';
export type { PassEntry } from './schedules/pass-entry.js';
export type { BackfillAnswer, TriggerAnswer } from './schedules/runs-on-demand.js';
export type { SchedulePatch } from './schedules/schedule-patch.js';
export type { StoredSchedule } from './schedules/schedule-view.js';
export type { SchedulePage } from './schedules/stored-schedules.js';
export { attachLogger, type LogTarget } from './runtime/logger.js';
export type { QueueBacklog } from './store/backlog.js';
export type { CancelAnswer } from './store/cancel.js';
export type { HoldAnswer } from './store/hold.js';
export type { MoveAnswer } from './store/move.js';
export type { PoolUse } from './store/pool-use.js';
export type { RetryAnswer } from './store/retry.js';
export type { Handler, HandlerClass, HandlerFunction, HandlerObject, JobContext } from './worker/handler.js';
export type { HeldLock } from './worker/named-locks.js';

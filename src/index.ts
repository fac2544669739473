// The public interface. Everything else is internal. The comments below are the headings of the reference in docs/api.md.

// Scheduler, errors and events
export { type AnyScheduler, Scheduler } from './scheduler.js';
export type { MongoClientLike, MongooseConnectionLike } from './config/connection-options.js';
export type { AllSchedulerOptions, QueueSettings, SchedulerOptions } from './config/options.js';
export { ChronosError, type ErrorCode, type StoredError } from './domain/errors.js';
export type { EventName, LifecycleState, SchedulerEvents } from './domain/events.js';
export type { Logger } from './domain/logger.js';
export type { MeasurementName, Measurements } from './runtime/measurements.js';

// Times
export type { Clock } from './domain/clock.js';
export type { Duration } from './domain/duration.js';
export type { Instant } from './domain/instant.js';

// Starting, stopping and passes
export type {
  DaemonOptions,
  InstallOptions,
  PassOptions,
  PauseOptions,
  RescheduleOptions,
  ScheduleQueryOptions,
  WaitOptions,
} from './config/method-options.js';
export type { DaemonReport } from './lifecycle/daemon.js';
export type { StopReport } from './lifecycle/lifecycle.js';
export type { PassReport } from './lifecycle/pass.js';
export type { WorkerLoad } from './lifecycle/worker-load.js';
export type { PruneCounts } from './maintenance/pruner.js';
export type { PassEntry } from './schedules/pass/pass-entry.js';
export type { PoolUse } from './store/connection.js';
export type { Count, QueueBacklog } from './store/jobs/counts.js';
export type { HeldLock } from './worker/locks/named-locks.js';

// Handlers
export type {
  ErrorHook,
  Filter,
  HandlerOptions,
  HandlerRetryOptions,
  Hook,
  RetentionOptions,
  RetryOptions,
  SuccessHook,
} from './config/handler-options.js';
export type { RetryFunctions } from './domain/job/backoff.js';
export { CancelJob, RetryAfter, SnoozeJob, UnrecoverableError } from './domain/job/control-flow.js';
export { EventChannel, type ChannelListener } from './handlers/built-in/event-channel.js';
export type {
  Handler,
  HandlerClass,
  HandlerFunction,
  HandlerObject,
  JobContext,
} from './domain/job/handler.js';
export type { HandlerMiddleware } from './handlers/middleware.js';

// Jobs
export type { DispatchOptions } from './config/dispatch-options.js';
export type { ExecutionOutcome } from './domain/job/execution.js';
export { JOB_STATUSES, type JobStatus } from './domain/job/job.js';
export { JobFailedError } from './domain/job/result.js';
export { JOB_STATES, type JobState } from './domain/job/state.js';
export { TRANSITIONS, type Transition, type TransitionName } from './domain/job/transitions.js';
export type {
  AdHoc,
  AnyPayloads,
  DefaultTasks,
  DispatchArguments,
  DispatchRequest,
  InputOf,
  OutputOf,
  ResultOf,
  SchemaTask,
  Task,
  TaskMap,
  TaskPayload,
} from './jobs/task-types.js';
export type { DispatchMiddleware } from './jobs/dispatch-middleware.js';
export type { DispatchResult } from './jobs/dispatcher.js';
export type { BoundDraft, Draft } from './jobs/draft.js';
export type { JobHandle } from './jobs/job-handle.js';
export type { ExecutionSummary, ExecutionView, JobDetails, JobSummary, JobView } from './jobs/job-views.js';
export type { JobChange } from './store/jobs/change.js';

// Schedules
export type { MisfireOptions, ScheduleOptions } from './config/schedule-options.js';
export type { FieldPattern, FieldSchedule } from './domain/calendar/field-schedule.js';
export type { Rule } from './domain/calendar/rule.js';
export type { Misfire, Overlap, SkipReason } from './domain/schedule/schedule.js';
export type { ScheduleBuilder } from './schedules/definition/builder.js';
export type { Definition } from './schedules/definition/definition.js';
export type { BackfillResult, BackfillPreview, TriggerResult } from './schedules/stored/manual-runs.js';
export type { NewSchedule, SchedulePatch, ScheduleUpsert } from './schedules/stored/schedule-input.js';
export type { SkipView, StoredSchedule, UpsertResult } from './schedules/stored/stored-schedules.js';

// Operations
export type {
  AuditEntry,
  AuditFilterOptions,
  ExecutionFilterOptions,
  JobFilterOptions,
  Page,
  PageOptions,
} from './config/query-options.js';
export type { AuditView } from './operations/audit.js';
export type {
  BulkAction,
  BulkChange,
  BulkOptions,
  BulkProgress,
  CountedAction,
  EmptiedQueue,
} from './operations/bulk.js';
export type { ConfigurationView, DefinitionView, ScheduleDifference } from './operations/definitions.js';
export type { Finding } from './operations/doctor/doctor.js';
export type { Explanation } from './operations/explain/explain.js';
export type { WorkerView } from './operations/lists.js';
export type { Collected, Operations } from './operations/operations.js';
export type { QueueView, StatusView, Throughput } from './operations/status.js';
export type { WorkerChange } from './store/system.js';

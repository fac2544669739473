import type { Connection, mongo, Schema } from 'mongoose';
import type { ExecutionDocument } from '../../domain/job/execution.js';
import type { JobDocument } from '../../domain/job/job.js';
import type { ScheduleDocument, SkipDocument } from '../../domain/schedule/schedule.js';
import { executionSchema, jobSchema } from './job-schemas.js';
import { scheduleSchema, skipSchema } from './schedule-schemas.js';
import {
  type AuditDocument,
  auditSchema,
  type LockDocument,
  lockSchema,
  type WorkerDocument,
  workerSchema,
} from './system-schemas.js';

/** Operations use the driver's collections: mongoose's hydrated documents cost several times as much. */
export interface Collections {
  jobs: mongo.Collection<JobDocument>;
  executions: mongo.Collection<ExecutionDocument>;
  workers: mongo.Collection<WorkerDocument>;
  locks: mongo.Collection<LockDocument>;
  schedules: mongo.Collection<ScheduleDocument>;
  skips: mongo.Collection<SkipDocument>;
  audit: mongo.Collection<AuditDocument>;
}

/** By model name. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  Job: jobSchema,
  Execution: executionSchema,
  Worker: workerSchema,
  Lock: lockSchema,
  Schedule: scheduleSchema,
  Skip: skipSchema,
  Audit: auditSchema,
};

export function defineModels(connection: Connection): void {
  for (const [name, schema] of Object.entries(SCHEMAS)) connection.model(name, schema);
}

export function openCollections(connection: Connection): Collections {
  const db = connection.getClient().db(connection.name);
  return {
    jobs: db.collection('jobs'),
    executions: db.collection('executions'),
    workers: db.collection('workers'),
    locks: db.collection('locks'),
    schedules: db.collection('schedules'),
    skips: db.collection('skips'),
    audit: db.collection('audit'),
  };
}

import { randomUUID } from 'node:crypto';
import { DEFAULT_QUEUE } from '../config/options.js';
import { newJob, type JobDocument } from '../domain/job.js';
import { jitterOf, type OwedRun, type ScheduleDocument } from '../domain/schedule.js';

/** The job for an occurrence: its time is the schedule's, however late it is made. */
export function jobOf(schedule: ScheduleDocument, { id, at }: OwedRun, now: Date): JobDocument {
  const { taskType, queue, priority, payload, retries, timeout, maxRunningTime, userId, jitter } = schedule;
  return newJob({
    _id: id,
    taskType,
    queue: queue ?? DEFAULT_QUEUE,
    priority,
    payload,
    nextRunAt: new Date(at.getTime() + jitterOf(id, jitter)),
    createdAt: now,
    retries,
    timeout,
    maxRunningTime,
    schedule: schedule._id,
    scheduledFor: at,
    userId,
    nonce: randomUUID(),
  });
}

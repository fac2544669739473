import { DEFAULT_MISFIRE, type ScheduleDocument } from '../../../src/domain/schedule/schedule.js';
import { START, timeAfter } from '../instants.js';

/** A stored schedule that runs every hour, for the first time an hour after the start of the manual clock. */
export function aSchedule(fields: Partial<ScheduleDocument> = {}): ScheduleDocument {
  return {
    _id: 's',
    owner: 'api',
    taskType: 'work',
    rule: { cron: '0 * * * *', timezone: 'UTC' },
    payload: null,
    queue: null,
    priority: 100,
    retries: null,
    timeout: null,
    maxRunningTime: null,
    expiresIn: null,
    misfire: DEFAULT_MISFIRE,
    overlap: 'skip',
    singleInstance: false,
    jitter: 0,
    maxRuns: null,
    enabled: true,
    environments: [],
    userId: null,
    hash: 'hash',
    rev: 0,
    isActive: true,
    paused: null,
    disabledReason: null,
    anchor: START,
    nextRunAt: timeAfter(3_600_000),
    lastRunAt: null,
    active: null,
    pending: [],
    runs: 0,
    decision: 'first',
    createdAt: START,
    updatedAt: START,
    ...fields,
  };
}

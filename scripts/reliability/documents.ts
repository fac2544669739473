import { fileURLToPath } from 'node:url';
import mongoose, { type mongo } from 'mongoose';
import { startMongod } from '@chronos/mongod';
import { Scheduler } from '../../src/index.js';
import { DUE, EXPIRED, LOCKED } from '../../test/support/invalid-documents.js';
import { waitUntil } from '../../test/support/wait-until.js';
import { WorkerProcess } from '../../test/support/worker-process.js';

const HANDLERS = fileURLToPath(new URL('handlers.mjs', import.meta.url));
const HEALTHY = 10_000;
const MAX_WAIT_MS = 120_000;

/** Schedules that workers used to ignore, or that exhausted their memory. */
const SCHEDULES: readonly mongo.Document[] = [
  { misfire: { policy: 'all', within: 3e12, cap: 1e9 } },
  { owner: undefined },
  { rule: { cron: '* * * * *', timezone: 'Mars/Olympus' } },
];

export interface DocumentsResult {
  /** Malformed jobs and schedules among the healthy jobs. */
  malformed: number;
  /** Milliseconds from the start of the worker process until all healthy jobs were completed. */
  duration: number;
  /** Healthy jobs that did not complete in their first attempt. */
  affected: number;
  /** Malformed jobs that did not end as FAILED with INVALID_JOB, and malformed schedules that were not disabled. */
  notEnded: number;
}

/** One worker process with default options runs healthy jobs, with every malformed document in front of them or with none. */
export async function measureDocuments(withMalformed: boolean): Promise<DocumentsResult> {
  const mongod = await startMongod({});
  const application = new Scheduler({ uri: mongod.uri, logger: false });
  const connection = await mongoose.createConnection(mongod.uri).asPromise();
  let worker: WorkerProcess | undefined;
  try {
    await application.install();
    const jobs = connection.collection<mongo.Document>('chronos_jobs');
    const schedules = connection.collection<mongo.Document>('chronos_schedules');
    const malformed = withMalformed ? [...malformedJobs(DUE, {}), ...malformedJobs(EXPIRED, expired())] : [];
    const unchecked = { bypassDocumentValidation: true };
    if (malformed.length > 0) {
      await jobs.insertMany(malformed, unchecked);
      await application.addSchedule({ id: 'template', taskType: 'wait', cron: '0 0 1 1 *' });
      const template = await schedules.findOne({ _id: 'template' as never });
      await schedules.insertMany(
        SCHEDULES.map((fields, index) =>
          defined({
            ...template,
            nextRunAt: new Date(Date.now() - 365 * 86_400_000),
            ...fields,
            _id: `malformed-${index}`,
          }),
        ),
        unchecked,
      );
    }
    await application.dispatchMany(Array.from({ length: HEALTHY }, () => ({ taskType: 'wait', payload: 0 })));
    const healthy = { payload: 0 };
    const startedAt = performance.now();
    worker = await WorkerProcess.start('worker', { MONGODB_URI: mongod.uri, HANDLERS });
    const left = { ...healthy, status: { $in: ['SCHEDULED', 'QUEUED', 'RUNNING'] } };
    await waitUntil(
      'all healthy jobs are finished',
      async () => (await jobs.findOne(left)) === null,
      MAX_WAIT_MS,
    );
    const duration = performance.now() - startedAt;
    const isEnded = { status: 'FAILED', 'error.code': 'INVALID_JOB' };
    const endedJobs = async (): Promise<number> => jobs.countDocuments(isEnded);
    if (withMalformed)
      await waitUntil(
        'the sweep has ended malformed jobs',
        async () => (await endedJobs()) === malformed.length,
        MAX_WAIT_MS,
      );
    const disabled = await schedules.countDocuments({ _id: /^malformed/, isActive: false });
    return {
      malformed: malformed.length + (withMalformed ? SCHEDULES.length : 0),
      duration,
      affected: HEALTHY - (await jobs.countDocuments({ ...healthy, status: 'COMPLETED', fence: 1 })),
      notEnded: withMalformed ? malformed.length + SCHEDULES.length - (await endedJobs()) - disabled : 0,
    };
  } finally {
    await worker?.kill();
    await application.stop('1s');
    await connection.destroy();
    await mongod.stop();
  }
}

function expired(): mongo.Document {
  return { ...LOCKED, status: 'RUNNING', lockedUntil: new Date(Date.now() - 1000) };
}

/** Due before every healthy job. */
function malformedJobs(
  table: Readonly<Record<string, mongo.Document>>,
  base: mongo.Document,
): mongo.Document[] {
  const due = {
    taskType: 'wait',
    queue: 'default',
    priority: 0,
    status: 'SCHEDULED',
    nextRunAt: new Date(0),
  };
  return Object.entries(table).map(([name, fields]) =>
    defined({ _id: `${'status' in base ? 'locked' : 'due'}: ${name}`, ...due, ...base, ...fields }),
  );
}

function defined(document: mongo.Document): mongo.Document {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined));
}

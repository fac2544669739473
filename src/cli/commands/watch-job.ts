import type { Clock } from '../../domain/clock.js';
import { isFinished, type JobStatus } from '../../domain/job.js';
import type { JobView } from '../../dispatch/job-view.js';
import { executionView, type ExecutionView } from '../../operations/views.js';
import type { Reading } from '../reading.js';
import { styled, type Line } from '../styled.js';
import { executionLine } from './executions-view.js';
import { statusSpan } from './jobs-view.js';

const FIRST_LOOK = 100;
const LONGEST_PAUSE = 1000;
/** The row of an attempt is written just after its job: so many looks it may be late. */
const LATE_LOOKS = 20;

/** Something that happened to a job while somebody watched. */
export type JobEvent =
  | { event: 'status'; jobId: string; status: JobStatus }
  | { event: 'progress'; jobId: string; value: number; note: string | null }
  | { event: 'attempt'; jobId: string; execution: ExecutionView };

/** What happens to a job, until it is finished or gone. Returns it as it was then; null when it is not there. */
export async function* watchJob(
  scheduler: Reading,
  jobId: string,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<JobEvent, JobView | null> {
  const seen = new Set<string>();
  let before: JobView | undefined;
  let late = 0;
  for (let pause = FIRST_LOOK; ; pause = Math.min(LONGEST_PAUSE, pause * 1.5)) {
    const job = await scheduler.getJob(jobId);
    if (job === null) return null;
    if (job.status !== before?.status) yield { event: 'status', jobId, status: job.status };
    const { progress } = job;
    if (progress !== null && progress.at.getTime() !== before?.progress?.at.getTime())
      yield { event: 'progress', jobId, value: progress.value, note: progress.note };
    const isOver = isFinished(job.status);
    if (isOver || job.fence !== before?.fence || job.status !== before.status) {
      pause = FIRST_LOOK;
      for (const row of await scheduler.getExecutions(jobId)) {
        if (seen.has(row._id)) continue;
        seen.add(row._id);
        yield { event: 'attempt', jobId, execution: executionView(row) };
      }
    }
    before = job;
    if (signal.aborted) return job;
    if (isOver && (job.startedAt === null || seen.has(`${jobId}:${job.fence}`) || ++late > LATE_LOOKS))
      return job;
    await clock.sleep(pause, signal);
  }
}

export function eventLines(happened: JobEvent): Line[] {
  switch (happened.event) {
    case 'status':
      return [['status    ', statusSpan(happened.status)]];
    case 'progress':
      return [[`progress  ${happened.value}`, styled('dim', ` ${happened.note ?? ''}`)]];
    case 'attempt':
      return [
        ...happened.execution.log.map((line): Line => [styled('dim', 'log       '), line]),
        executionLine(happened.execution),
      ];
  }
}

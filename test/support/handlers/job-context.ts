import type { JobContext } from '../../../src/domain/job/handler.js';
import { aJob } from '../factories/job.js';

/** The second argument of a handler, with the lines that the handler logs. */
export function aJobContext(fields: Partial<JobContext> = {}): JobContext & { lines: string[] } {
  const lines: string[] = [];
  return {
    ...aJob({ status: 'RUNNING' }),
    id: 'job-1',
    tags: [],
    attempt: 1,
    fence: 7,
    signal: new AbortController().signal,
    reportProgress: async () => true,
    log: (line) => void lines.push(line),
    lines,
    ...fields,
  };
}

import { setTimeout as pause } from 'node:timers/promises';
import { SnoozeJob, type JobContext } from '../src/index.js';

// Handlers by task type: the name of the export is the task type. A worker loads this module with
// HANDLERS=dist/examples/handlers.js. In your own project, import from 'chronos-worker' instead.

/** Pretends to send an email. Passes the signal on, so that a timeout or a shutdown stops the work at once. */
export async function sendEmail(payload: { to: string; subject: string }, job: JobContext): Promise<object> {
  job.log(`connecting for ${payload.to}`);
  await pause(200, undefined, { signal: job.signal });
  return { sent: true, to: payload.to };
}

/** Long work in steps: reports its progress, and stops between two steps when its signal is aborted. */
export async function generateReport(
  payload: { name: string; pages: number },
  job: JobContext,
): Promise<object> {
  for (let page = 1; page <= payload.pages; page++) {
    job.signal.throwIfAborted();
    await pause(300, undefined, { signal: job.signal });
    await job.reportProgress(Math.round((100 * page) / payload.pages), `page ${page} of ${payload.pages}`);
  }
  return { name: payload.name, pages: payload.pages };
}

/** Fails the first attempts, to show retries with backoff. */
export function callFlakyService(payload: { failures: number }, job: JobContext): object {
  if (job.attempt <= payload.failures)
    throw new Error(`the service is not available (attempt ${job.attempt})`);
  return { attempts: job.attempt };
}

/** Snoozes until the kettle is hot: snoozing does not count as an attempt. */
export function brewTea(payload: { readyAt: string }, job: JobContext): object {
  const wait = new Date(payload.readyAt).getTime() - Date.now();
  if (wait > 0) {
    job.log(`the kettle needs ${wait} ms more`);
    throw new SnoozeJob(wait);
  }
  return { tea: 'ready' };
}

/** Idempotent side effects: a job may run twice if a process dies, but each job id is charged once. */
export class ChargeCard {
  static readonly #charged = new Map<string, number>();

  handle(payload: { amount: number }, job: JobContext): object {
    if (!ChargeCard.#charged.has(job.id)) ChargeCard.#charged.set(job.id, payload.amount);
    return { charged: ChargeCard.#charged.get(job.id), fence: job.fence };
  }
}

import { setTimeout as pause } from 'node:timers/promises';
import type { DispatchRequest, Scheduler as SchedulerClass } from '../../src/index.js';
import { onMeasurement } from '../../src/runtime/measurements.js';
import { Recorder, sharedNow, type Context, type Report, type Role, type Work } from './roles.js';

// Measures the built package, because that is what users run.
const built = new URL('../../dist/src/index.js', import.meta.url).href;
const { Scheduler } = (await import(built)) as { Scheduler: typeof SchedulerClass };

type Of<Name extends Role['name']> = Extract<Role, { name: Name }>;

const PROGRESS_MS = 20;

const HANDLERS: Record<Work, (payload: { index: number }) => unknown> = {
  noop: () => undefined,
  result: ({ index }) => ({ index }),
  sleep: () => pause(5),
};

export const chronosRoles = {
  async work({ uri, stopped, progress }: Context, role: Of<'work'>): Promise<Report> {
    const { total, concurrency, work, skipsDuplicateCheck = false } = role;
    const recorder = new Recorder();
    const worker = new Scheduler({ uri, concurrency });
    const handler = HANDLERS[work];
    worker.registerHandler('noop', (payload: { index: number }, job) => {
      if (!skipsDuplicateCheck) recorder.started(job.id);
      return handler(payload);
    });
    onMeasurement(worker.workerId, 'claim', ({ found, claimed }) => {
      if (found > 0) recorder.claims[claimed > 0 ? 'won' : 'lost']++;
    });
    let done = 0;
    const allDone = new Promise<void>((resolve) => {
      worker.on('job:complete', () => {
        if (++done % Math.ceil(total / 10) === 0) recorder.measureMemory();
        if (done === total) resolve();
      });
    });
    await worker.start();
    const ticking = setInterval(() => progress(done), PROGRESS_MS);
    await Promise.race([allDone, stopped]);
    clearInterval(ticking);
    progress(done);
    const report = recorder.report(done);
    await worker.stop();
    return report;
  },

  async receive({ uri, ready }: Context, { count, load }: Of<'receive'>): Promise<Report> {
    const recorder = new Recorder();
    const worker = new Scheduler({ uri, concurrency: 20 });
    const allReceived = new AbortController();
    worker.registerHandler('timed', ({ at }: { at: number }, job) => {
      recorder.started(job.id);
      if (recorder.latencies.push(sharedNow() - at) === count) allReceived.abort();
    });
    worker.registerHandler('noop', () => pause(5));
    await worker.start();
    ready();
    while (!allReceived.signal.aborted) {
      if (load > 0) await worker.dispatchMany(requests(load));
      await pause(100, undefined, { signal: allReceived.signal }).catch(() => undefined);
    }
    const report = recorder.report(recorder.latencies.length);
    await worker.stop();
    return report;
  },

  async send({ uri }: Context, { count, gap }: Of<'send'>): Promise<Report> {
    const recorder = new Recorder();
    const client = new Scheduler({ uri });
    for (let index = 0; index < count; index++) {
      await client.dispatch('timed', { at: sharedNow() }, { priority: 1 });
      await pause(gap);
    }
    const report = recorder.report(count);
    await client.stop();
    return report;
  },

  async enqueue({ uri }: Context, { total, how }: Of<'enqueue'>): Promise<Report> {
    const recorder = new Recorder();
    const client = new Scheduler({ uri });
    if (how === 'bulk') await client.dispatchMany(requests(total));
    else for (const { taskType, payload } of requests(total)) await client.dispatch(taskType, payload);
    const report = recorder.report(total);
    await client.stop();
    return report;
  },

  async idle({ uri, stopped, ready }: Context): Promise<Report> {
    const recorder = new Recorder();
    const worker = new Scheduler({ uri });
    worker.registerHandler('noop', () => undefined);
    await worker.start();
    ready();
    await stopped;
    const report = recorder.report(0);
    await worker.stop();
    return report;
  },
};

function* requests(total: number): Generator<DispatchRequest> {
  for (let index = 0; index < total; index++) yield { taskType: 'noop', payload: { index } };
}

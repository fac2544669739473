// `dispatch` resolves to a handle. Handles and drafts are not thenables, so awaiting them again is harmless.
import { type HttpServer, serveHttp } from '../../../src/http/server.js';
import {
  type AnyPayloads,
  JOB_STATES,
  JobFailedError,
  Scheduler,
  type Draft,
  type JobChange,
  type ExecutionView,
  type JobHandle,
  type JobView,
} from '../../../src/index.js';

type NotThenable<T> = T extends { then: unknown } ? never : T;

export async function use(): Promise<JobView> {
  const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
  const handle: NotThenable<JobHandle> = await scheduler.dispatch('work', { n: 1 });
  const draft: NotThenable<Draft<AnyPayloads, { n: number }>> = scheduler
    .delay('1h')
    .args({ n: 1 })
    .queue('mails')
    .priority(1);
  const drafted: JobHandle = await draft.dispatch('work');
  const id: string = drafted.id;

  const changes: JobChange[] = [
    await handle.at('2026-11-01 03:15'),
    await handle.delay('1h'),
    await handle.reschedule({ at: new Date() }),
    await handle.cancel('not needed'),
    await scheduler.retry(id),
    await scheduler.hold(id, 'later'),
    await scheduler.unhold(id),
    await scheduler.reschedule(id, { delay: '1h' }),
  ];
  for (const { result, state } of changes) {
    result satisfies 'changed' | 'requested' | 'refused' | 'notFound';
    if (state !== null) JOB_STATES[state].meaning.trim();
  }

  const any: NotThenable<JobHandle> = scheduler.job(id);
  changes.push(await any.retry(), await any.hold('later'), await any.unhold());
  const found: [JobView | null, ExecutionView[]] = [await any.get(), await any.executions()];
  found satisfies unknown;
  try {
    (await any.result({ timeout: '30s' })) satisfies unknown;
  } catch (error) {
    if (error instanceof JobFailedError) `${error.jobId} ${error.message} ${error.code ?? ''}`.trim();
  }

  const many = await scheduler.dispatchMany([{ taskType: 'work', payload: 1 }, { taskType: 'work' }]);
  for (const result of many) if ('error' in result) throw result.error;

  const held = await scheduler.withLock('report', ({ fence, signal }) => (signal.aborted ? 0 : fence));
  held.toFixed();
  await scheduler.stop('10s');
  return handle.wait({ timeout: '1m' });
}

/** Both are stopped at the end, also after an error. */
export async function useAndStop(): Promise<string> {
  await using scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
  await using server: HttpServer = await serveHttp(scheduler, { port: 0 });
  return server.address;
}

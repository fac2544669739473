// `dispatch` resolves to a handle. Handles and drafts are not thenables, so awaiting them again is harmless.
import {
  JOB_STATES,
  Scheduler,
  type Draft,
  type JobChange,
  type JobHandle,
  type JobView,
} from '../../../src/index.js';

type NotThenable<T> = T extends { then: unknown } ? never : T;

export async function use(): Promise<JobView> {
  const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
  const handle: NotThenable<JobHandle> = await scheduler.dispatch('work', { n: 1 });
  const draft: NotThenable<Draft<string>> = scheduler.delay('1h').args({ n: 1 }).queue('mails').priority(1);
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

  const many = await scheduler.dispatchMany([{ taskType: 'work', payload: 1 }, { taskType: 'work' }]);
  for (const result of many) if ('error' in result) throw result.error;

  const held = await scheduler.withLock('report', ({ fence, signal }) => (signal.aborted ? 0 : fence));
  held.toFixed();
  await scheduler.stop('10s');
  return handle.wait({ timeout: '1m' });
}

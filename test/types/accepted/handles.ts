// `dispatch` resolves to a handle. Handles and drafts are not thenables, so awaiting them again is harmless.
import { Scheduler, type Draft, type JobHandle, type JobView } from '../../../src/index.js';

type NotThenable<T> = T extends { then: unknown } ? never : T;

export async function use(): Promise<JobView> {
  const scheduler = new Scheduler({ uri: 'mongodb://localhost/app' });
  const handle: NotThenable<JobHandle> = await scheduler.dispatch('work', { n: 1 });
  const draft: NotThenable<Draft<string>> = scheduler.delay('1h').args({ n: 1 }).queue('mails').priority(1);
  const drafted: JobHandle = await draft.dispatch('work');
  const id: string = drafted.id;

  const moved = await handle.at('2026-11-01 03:15');
  if (moved.moved) moved.nextRunAt.toISOString();
  else id.concat(moved.status ?? 'gone');

  const answer = await handle.cancel('not needed');
  if (answer.answer === 'alreadyFinished') answer.status satisfies 'COMPLETED' | 'FAILED' | 'CANCELLED';

  const many = await scheduler.dispatchMany([{ taskType: 'work', payload: 1 }, { taskType: 'work' }]);
  for (const result of many) if ('error' in result) throw result.error;

  const held = await scheduler.withLock('report', ({ fence, signal }) => (signal.aborted ? 0 : fence));
  held.toFixed();
  await scheduler.stop('10s');
  return handle.wait({ timeout: '1m' });
}

// Handlers that are classes: with a static handle, an instance handle, or execute.
import {
  CancelJob,
  RetryAfter,
  Scheduler,
  SnoozeJob,
  UnrecoverableError,
  type JobContext,
} from '../../../src/index.js';

class Static {
  static handle(payload: { to: string }, job: JobContext): string {
    return `${payload.to} ${job.attempt}`;
  }
}

class AccountClosed extends UnrecoverableError {
  override readonly name = 'AccountClosed';
}

class Instance {
  static taskType = 'instance';
  handle(payload: { n: number }): number {
    if (payload.n < 0) throw new CancelJob('negative');
    if (payload.n > 9) throw new RetryAfter('30s', 'rate limited', { cause: payload.n });
    if (payload.n > 5) throw new AccountClosed('closed', { cause: payload });
    return payload.n;
  }
}

class Old {
  async execute(job: JobContext): Promise<boolean> {
    if (job.attempt > 3) throw new SnoozeJob('10m');
    return await job.reportProgress(1);
  }
}

export async function use(): Promise<void> {
  const scheduler = new Scheduler({ uri: 'mongodb://localhost/app', taskHandlers: { old: Old } });
  scheduler.registerHandler(Static).registerHandler(Instance, { lease: '10s' }).registerHandler(Old);
  await scheduler.dispatch(Static, { to: 'a' });
  await scheduler.dispatch(Instance, { n: 1 }, { priority: 1 });
  await scheduler.dispatch(Old);
  // Without a handler map, any name and any payload are accepted.
  await scheduler.dispatch('anything', { at: 'all' });
  await scheduler.dispatch('adHoc', { n: 1 }, { handler: (payload: { n: number }) => payload.n });
}

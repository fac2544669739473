import { Scheduler, type JobContext } from '../../../src/index.js';

const scheduler = new Scheduler({ uri: 'mongodb://localhost' });

class Static {
  static handle(payload: { to: string }): string {
    return payload.to;
  }
}

class Instance {
  handle(payload: { n: number }, job: JobContext): number {
    return payload.n + job.attempt;
  }
}

class Nothing {
  run(): void {}
}

class Numbered {
  execute(): number {
    return 1;
  }
}

// rejected: a payload that the class does not accept
await scheduler.dispatch(Static, { to: 5 });
// rejected: a payload that the instance does not accept
await scheduler.dispatch(Instance, { n: 'one' });
// rejected: a class without a handler method
scheduler.registerHandler(Nothing);
// rejected: an execute that does not return a boolean
scheduler.registerHandler(Numbered);
// rejected: dispatching a class without a handler method
await scheduler.dispatch(Nothing);

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

// refused: a payload that the class does not take
await scheduler.dispatch(Static, { to: 5 });
// refused: nor the instance
await scheduler.dispatch(Instance, { n: 'one' });
// refused: a class that handles nothing
scheduler.registerHandler(Nothing);
// refused: execute that answers neither true nor false
scheduler.registerHandler(Numbered);
// refused: dispatching a class that handles nothing
await scheduler.dispatch(Nothing);

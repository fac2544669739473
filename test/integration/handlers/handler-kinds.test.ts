import assert from 'node:assert/strict';
import type { JobContext, Scheduler } from '../../../src/index.js';
import { manualScheduler } from '../../support/manual-scheduler.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { START } from '../../support/instants.js';

describe('handlers', () => {
  const database = useSharedDatabase();

  /** Runs one pass and returns the outcome of the job. */
  async function outcome(
    scheduler: Scheduler,
    id: string,
  ): Promise<{ status: string; result: unknown; error: string | null }> {
    await scheduler.run();
    const job = await scheduler.getJob(id);
    return { status: job!.status, result: job!.result, error: job!.error?.message ?? null };
  }

  const completed = (result: unknown): object => ({ status: 'COMPLETED', result, error: null });

  it('run the function registered for the task type with the payload, and its result is stored [C3]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('greet', (payload: { name: string }) => ({ hello: payload.name }));
    const { id } = await scheduler.dispatch('greet', { name: 'Ada' });
    assert.deepEqual(await outcome(scheduler, id), completed({ hello: 'Ada' }));
  });

  it('can be passed as taskHandlers, also with names like constructor [C3]', async () => {
    const taskHandlers = { greet: () => 'hello', constructor: async () => 'built' };
    const { scheduler } = manualScheduler(database, { taskHandlers });
    const greet = await scheduler.dispatch('greet');
    const built = await scheduler.dispatch('constructor');
    assert.deepEqual(await outcome(scheduler, greet.id), completed('hello'));
    assert.deepEqual(await outcome(scheduler, built.id), completed('built'));
  });

  it('receive the job next to its payload [C3]', async () => {
    const { scheduler } = manualScheduler(database, { workerId: 'me' });
    let seen: JobContext | undefined;
    scheduler.registerHandler('inspect', (_, job) => {
      seen = job;
    });
    const options = { queue: 'default', priority: 7 };
    const { id } = await scheduler.dispatch('inspect', { deep: { thing: [1] } }, options);
    await scheduler.run();

    const { signal, ...fields } = seen!;
    const data = Object.fromEntries(
      Object.entries(fields).filter(([, value]) => typeof value !== 'function'),
    );
    assert.deepEqual(data, {
      id,
      taskType: 'inspect',
      queue: 'default',
      priority: 7,
      status: 'RUNNING',
      nextRunAt: START,
      createdAt: START,
      schedule: null,
      scheduledFor: null,
      userId: null,
      tags: [],
      attempts: 0,
      crashes: 0,
      lockedBy: 'me',
      progress: null,
      payload: { deep: { thing: [1] } },
      attempt: 1,
      fence: 1,
    });
    assert.equal(signal.aborted, false);
  });

  it('are rejected when the task type has one already or when they are not handlers [C3]', () => {
    const { scheduler } = manualScheduler(database);
    const first = (): void => undefined;
    scheduler.registerHandler('work', first);
    scheduler.registerHandler('work', first);
    assert.throws(() => scheduler.registerHandler('work', () => undefined), { code: 'HANDLER_EXISTS' });
    for (const bad of [undefined, null, 'work', 7, {}, { handle: 1 }, class Empty {}])
      assert.throws(() => scheduler.registerHandler('other', bad as never), { code: 'HANDLER_INVALID' });
    for (const name of ['', 'a@b', 'a+b', 'a=b', 'a\0b', 'x'.repeat(201), { $ne: null }, null])
      assert.throws(() => scheduler.registerHandler(name as never, first), { code: 'INVALID_ARGUMENT' });
  });

  it('are rejected with the option concurrency instead of ignoring it', () => {
    const { scheduler } = manualScheduler(database);
    assert.throws(() => scheduler.registerHandler('work', () => 1, { concurrency: 1 } as never), {
      code: 'INVALID_OPTIONS',
      message: /concurrency is not available yet/,
    });
  });

  describe('dispatch', () => {
    it('works by name, with args [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.registerHandler('add', ({ a, b }: { a: number; b: number }) => a + b);
      const byName = await scheduler.dispatch('add', { a: 1, b: 2 });
      const byDraft = await scheduler.args({ a: 3, b: 4 }).dispatch('add');
      assert.deepEqual(await outcome(scheduler, byName.id), completed(3));
      assert.deepEqual(await outcome(scheduler, byDraft.id), completed(7));
    });

    it('works ad hoc, with a handler in the call [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      const handler = (payload: number): number => payload * 2;
      const { id } = await scheduler.dispatch('double', 21, { handler });
      assert.deepEqual(await outcome(scheduler, id), completed(42));
      const again = await scheduler.dispatch('double', 4, { handler });
      assert.deepEqual(await outcome(scheduler, again.id), completed(8));
    });

    it('leaves an ad hoc job of a stopped process to a process with a handler for its task type [J6]', async () => {
      const { scheduler: first } = manualScheduler(database);
      const { id } = await first.dispatch('double', 21, { handler: (payload: number) => payload * 2 });
      await first.stop();
      const { scheduler: second } = manualScheduler(database);
      assert.equal(await second.run(), 0);
      second.registerHandler('double', (payload: number) => payload + payload);
      assert.deepEqual(await outcome(second, id), completed(42));
    });

    it('works by class with a static handle, called on the class [J6]', async () => {
      class Shout {
        static readonly mark = '!';
        static handle(payload: string): string {
          return payload + this.mark;
        }
      }
      const { scheduler } = manualScheduler(database);
      const { id } = await scheduler.dispatch(Shout, 'hey');
      assert.match((await scheduler.getJob(id))!.taskType, /^Shout$/);
      assert.deepEqual(await outcome(scheduler, id), completed('hey!'));
    });

    it('works by class with an instance handle, with a new instance per job [J6]', async () => {
      class Counter {
        static readonly taskType = 'count-up';
        #count = 0;
        handle(by: number): number {
          return (this.#count += by);
        }
      }
      const { scheduler } = manualScheduler(database);
      const first = await scheduler.dispatch(Counter, 2);
      const second = await scheduler.args(3).dispatch(Counter);
      assert.equal((await scheduler.getJob(first.id))!.taskType, 'count-up');
      assert.deepEqual(await outcome(scheduler, first.id), completed(2));
      assert.deepEqual(await outcome(scheduler, second.id), completed(3));
    });

    it('prefers a static handle to an instance handle, and that to execute [J6]', async () => {
      class Both {
        static handle(): string {
          return 'static';
        }
        handle(): string {
          return 'instance';
        }
      }
      class Two {
        handle(): string {
          return 'handle';
        }
        execute(): boolean {
          return false;
        }
      }
      const { scheduler } = manualScheduler(database);
      const both = await scheduler.dispatch(Both);
      const two = await scheduler.dispatch(Two);
      assert.deepEqual(await outcome(scheduler, both.id), completed('static'));
      assert.deepEqual(await outcome(scheduler, two.id), completed('handle'));
    });

    it('works by an object with a handle, called on the object [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      class Greeter {
        constructor(readonly greeting: string) {}
        handle(name: string): string {
          return `${this.greeting} ${name}`;
        }
      }
      scheduler.registerHandler('greet', new Greeter('hello'));
      const { id } = await scheduler.dispatch('greet', 'Ada');
      assert.deepEqual(await outcome(scheduler, id), completed('hello Ada'));
    });

    it('rejects a class that is not a handler, and two classes with the same name [J6]', async () => {
      const { scheduler } = manualScheduler(database);
      class Nothing {}
      await assert.rejects(async () => scheduler.dispatch(Nothing as unknown as string), {
        code: 'INVALID_ARGUMENT',
      });
      const twin = (result: number) =>
        class Twin {
          handle(): number {
            return result;
          }
        };
      await scheduler.dispatch(twin(1));
      await assert.rejects(async () => scheduler.dispatch(twin(2)), { code: 'HANDLER_EXISTS' });
    });
  });

  describe('classes with execute', () => {
    const classReturning = (value: unknown) =>
      class {
        static readonly taskType = 'executed';
        execute(job: JobContext): boolean | Promise<boolean> {
          job.log(`called with ${JSON.stringify(job.payload)}`);
          return value as boolean;
        }
      };

    for (const value of [true, Promise.resolve(true), undefined]) {
      it(`succeed when it returns ${value instanceof Promise ? 'a promise of true' : String(value)} [Y11]`, async () => {
        const { scheduler } = manualScheduler(database);
        const { id } = await scheduler.dispatch(classReturning(value) as never, { a: 1 } as never);
        assert.deepEqual(await outcome(scheduler, id), completed(null));
        assert.deepEqual((await scheduler.getExecutions(id))[0]?.log, ['called with {"a":1}']);
      });
    }

    it('fail when it returns false, and the attempt is counted and retried [Y11]', async () => {
      const { scheduler, clock } = manualScheduler(database);
      const options = { retries: { max: 2, base: '1s', jitter: 'none' } } as const;
      const { id } = await scheduler.dispatch(
        classReturning(Promise.resolve(false)) as never,
        null as never,
        options,
      );
      await scheduler.run();
      const waiting = await scheduler.getJob(id);
      assert.deepEqual([waiting?.status, waiting?.attempts], ['SCHEDULED', 1]);
      clock.advance(1000);
      await scheduler.run();
      const failed = await scheduler.getJob(id);
      assert.deepEqual(
        [failed?.status, failed?.attempts, failed?.error?.code],
        ['FAILED', 2, 'JOB_RETURNED_FALSE'],
      );
    });
  });
});

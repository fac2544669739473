import assert from 'node:assert/strict';
import { CancelJob } from '../../../../src/domain/job/control-flow.js';
import { EventChannel, eventHandler } from '../../../../src/handlers/built-in/event-channel.js';
import { signal } from '../../../support/events.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';
import { aJobContext } from '../../../support/handlers/job-context.js';
import { throwing } from '../../../support/handlers/recording-definition.js';

describe('eventHandler [D2]', () => {
  let channel: EventChannel;
  let calls: unknown[];
  const listener = (name: string) => (): number => calls.push(name);
  const run = async (payload: unknown): Promise<unknown> => eventHandler(channel)(payload, aJobContext());

  beforeEach(() => {
    channel = new EventChannel();
    calls = [];
  });

  it('passes the data and the job to every listener of that name, in order', async () => {
    const job = aJobContext();
    channel.on('order:paid', (...args) => calls.push(['first', ...args]));
    channel.on('order:paid', (...args) => calls.push(['second', ...args]));
    channel.on('order:sent', listener('another event'));
    assert.deepEqual(await eventHandler(channel)({ event: 'order:paid', data: { id: 7 } }, job), {
      listeners: 2,
    });
    assert.deepEqual(calls, [
      ['first', { id: 7 }, job],
      ['second', { id: 7 }, job],
    ]);
  });

  it('accepts a plain name for an event without data', async () => {
    channel.on('tick', (data) => calls.push(data));
    await run('tick');
    await run({ event: 'tick' });
    assert.deepEqual(calls, [null, null]);
  });

  it('waits for all listeners', async () => {
    const { promise, fire } = signal();
    channel.on('tick', () => promise);
    channel.on('tick', () => 'done');
    let result: unknown = 'pending';
    const running = run('tick').then((value) => (result = value));
    await flushEventLoop();
    assert.equal(result, 'pending');
    fire();
    assert.deepEqual(await running, { listeners: 2 });
  });

  it('does not call removed listeners, and calls once() listeners once', async () => {
    const twice = listener('twice');
    channel.on('tick', twice);
    channel.once('tick', listener('once'));
    assert.deepEqual(await run('tick'), { listeners: 2 });
    assert.deepEqual(await run('tick'), { listeners: 1 });
    channel.off('tick', twice);
    channel.off('tick', listener('never added'));
    channel.off('tock', twice);
    await assert.rejects(run('tick'), { code: 'EVENT_UNHEARD' });
    assert.deepEqual(calls, ['twice', 'once', 'twice']);
  });

  it('removes a once() listener before it is called', async () => {
    channel.once('tick', async () => {
      calls.push('outer');
      await assert.rejects(run('tick'), { code: 'EVENT_UNHEARD' });
    });
    await run('tick');
    assert.deepEqual(calls, ['outer']);
  });

  it('fails when there is no listener in this process, and suggests a similar name', async () => {
    await assert.rejects(run('order:paid'), {
      code: 'EVENT_UNHEARD',
      message: "no listener for 'order:paid' in this process: add one before the worker starts",
    });
    channel.on('order:paid', listener('paid'));
    await assert.rejects(run('order:piad'), {
      code: 'EVENT_UNHEARD',
      message: /did you mean 'order:paid'\?/,
    });
    for (const name of ['__proto__', 'constructor', 'toString']) {
      await assert.rejects(run(name), { code: 'EVENT_UNHEARD' });
    }
  });

  it('calls all listeners even if one fails, and fails with its error', async () => {
    for (const error of [new CancelJob('enough'), 'a text', undefined]) {
      calls = [];
      channel = new EventChannel();
      channel.on('tick', listener('before'));
      channel.on('tick', throwing(error));
      channel.on('tick', listener('after'));
      const thrown = await run('tick').then(
        () => 'nothing',
        (reason: unknown) => reason,
      );
      assert.equal(thrown, error);
      assert.deepEqual(calls, ['before', 'after']);
    }
  });

  it('fails with all errors in the order of the listeners', async () => {
    const [first, second] = [new Error('first'), new Error('second')];
    channel.on('tick', async () => {
      await flushEventLoop();
      throw first;
    });
    channel.on('tick', throwing(second));
    channel.on('tick', listener('after'));
    await assert.rejects(run('tick'), {
      name: 'AggregateError',
      message: "2 of 3 listeners of 'tick' failed, the first with: first",
      errors: [first, second],
    });
    assert.deepEqual(calls, ['after']);
  });

  it('rejects payloads without an event name', async () => {
    for (const payload of [
      '',
      null,
      7,
      [],
      ['tick'],
      {},
      { event: 7 },
      { event: 'tick', date: 1 },
      { data: 1 },
    ]) {
      await assert.rejects(run(payload), { code: 'INVALID_PAYLOAD', message: /^payload/ });
    }
  });

  it('rejects invalid listeners, and names that no payload can have', () => {
    for (const add of ['on', 'once'] as const) {
      assert.throws(() => channel[add]('tick', 'text' as never), {
        code: 'INVALID_ARGUMENT',
        message: /must be a function, got/,
      });
      assert.throws(() => channel[add]('', listener('x')), {
        code: 'INVALID_ARGUMENT',
        message: /must not be empty/,
      });
      assert.throws(() => channel[add](7 as never, listener('x')), { code: 'INVALID_ARGUMENT' });
    }
    assert.deepEqual(channel.names, []);
  });
});

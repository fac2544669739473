import assert from 'node:assert/strict';
import { Mutex } from '../../../src/runtime/waiting.js';
import { signal } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

describe('Mutex', () => {
  it('runs functions one at a time, also after one that throws', async () => {
    const mutex = new Mutex(60_000);
    const first = signal();
    const order: string[] = [];
    const failing = mutex.run(async () => {
      await first.promise;
      order.push('first');
      throw new Error('failed');
    });
    const second = mutex.run(() => Promise.resolve(order.push('second')));
    await flushEventLoop();
    assert.deepEqual(order, []);
    first.fire();
    await assert.rejects(failing, { message: 'failed' });
    assert.equal(await second, 2);
    await mutex.whenIdle();
  });

  it('does not wait for a function that hangs', async () => {
    const mutex = new Mutex(20);
    void mutex.run(() => new Promise(() => undefined));
    assert.equal(await mutex.run(() => Promise.resolve('next')), 'next');
    await mutex.whenIdle();
  });
});

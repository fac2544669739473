import assert from 'node:assert/strict';
import type { SchedulerEvents } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { recordEvents } from '../../support/events.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

const event: SchedulerEvents['job:start'] = {
  jobId: 'a',
  taskType: 'work',
  queue: 'default',
  attempt: 1,
  fence: 1,
  waited: 0,
};
const boom = new Error('boom');
const fail = (): never => {
  throw boom;
};

describe('EventBus', () => {
  let bus: EventBus;
  let heard: string[];
  const hear = (name: string) => (): number => heard.push(name);

  beforeEach(() => {
    bus = new EventBus();
    heard = [];
  });

  it('calls every listener, in order', () => {
    const given: unknown[] = [];
    bus.on('job:start', (one) => given.push(one));
    bus.on('job:start', (one) => given.push(one));
    bus.on('job:givenBack', hear('another event'));
    bus.emit('job:start', event);
    assert.deepEqual(given, [event, event]);
    assert.deepEqual(heard, []);
  });

  it('calls the other listeners when one throws', () => {
    const errors = recordEvents(bus, 'listener:error');
    bus.on('job:start', hear('before'));
    bus.on('job:start', fail);
    bus.on('job:start', hear('after'));
    bus.emit('job:start', event);
    assert.deepEqual(heard, ['before', 'after']);
    assert.deepEqual(errors, [{ name: 'listener:error', event: { event: 'job:start', error: boom } }]);
  });

  it('catches the rejection of an async listener', async () => {
    const errors = recordEvents(bus, 'listener:error');
    bus.on('job:start', async () => fail());
    // A promise of somebody else's making is no instance of Promise.
    bus.on('job:start', () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(boom) }));
    bus.emit('job:start', event);
    await flushEventLoop();
    assert.equal(errors.length, 2);
  });

  it('turns anything thrown into an error', () => {
    const errors = recordEvents(bus, 'listener:error');
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const weird: unknown[] = ['text', null, undefined, proxy];
    for (const thrown of weird) {
      bus.on('job:start', () => {
        throw thrown;
      });
    }
    bus.emit('job:start', event);
    assert.equal(errors.length, weird.length);
    for (const { event } of errors) assert.ok((event as { error: unknown }).error instanceof Error);
  });

  it('does not loop when a listener of listener:error fails', async () => {
    bus.on('listener:error', hear('told'));
    bus.on('listener:error', fail);
    bus.on('listener:error', async () => fail());
    bus.on('job:start', fail);
    bus.emit('job:start', event);
    await flushEventLoop();
    assert.deepEqual(heard, ['told']);
  });

  it('calls a listener of once() once', () => {
    bus.once('job:start', hear('once'));
    bus.emit('job:start', event);
    bus.emit('job:start', event);
    assert.deepEqual(heard, ['once']);
  });

  it('calls a listener of once() once, also when it throws or emits again', () => {
    bus.once('job:start', () => {
      heard.push('once');
      bus.emit('job:start', event);
      fail();
    });
    bus.emit('job:start', event);
    bus.emit('job:start', event);
    assert.deepEqual(heard, ['once']);
  });

  it('removes a listener with off(), whichever way it was added', () => {
    const listener = hear('never');
    bus.on('job:start', listener);
    bus.once('job:start', listener);
    bus.on('job:givenBack', listener);
    bus.off('job:start', listener);
    bus.off('job:start', hear('unknown'));
    bus.emit('job:start', event);
    assert.deepEqual(heard, []);
    bus.emit('job:givenBack', event);
    assert.deepEqual(heard, ['never'], 'the other event is not forgotten');
  });

  it('allows listeners to be added and removed while it emits', () => {
    const second = hear('second');
    bus.on('job:start', () => {
      heard.push('first');
      bus.off('job:start', second);
    });
    bus.on('job:start', second);
    bus.emit('job:start', event);
    bus.emit('job:start', event);
    assert.equal(heard.filter((name) => name === 'first').length, 2);
  });

  it('rejects unknown event names, with a hint, and listeners that are not functions', () => {
    const bus = new EventBus();
    assert.throws(() => bus.on('job:completed' as 'job:complete', () => undefined), {
      code: 'INVALID_ARGUMENT',
      message: "'job:completed' is not an event (did you mean 'job:complete'?)",
    });
    assert.throws(() => bus.on('job:complete', undefined as never), /must be a function, got undefined/);
  });
});

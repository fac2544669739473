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
  let calls: string[];
  const listener = (name: string) => (): number => calls.push(name);

  beforeEach(() => {
    bus = new EventBus('worker');
    calls = [];
  });

  it('calls every listener, in order', () => {
    const received: unknown[] = [];
    bus.on('job:start', (event) => received.push(event));
    bus.on('job:start', (event) => received.push(event));
    bus.on('job:released', listener('another event'));
    bus.emit('job:start', event);
    assert.deepEqual(received, [event, event]);
    assert.deepEqual(calls, []);
  });

  it('calls the other listeners when one throws', () => {
    const errors = recordEvents(bus, 'listener:error');
    bus.on('job:start', listener('before'));
    bus.on('job:start', fail);
    bus.on('job:start', listener('after'));
    bus.emit('job:start', event);
    assert.deepEqual(calls, ['before', 'after']);
    assert.deepEqual(errors, [{ name: 'listener:error', event: { event: 'job:start', error: boom } }]);
  });

  it('catches the rejection of an async listener', async () => {
    const errors = recordEvents(bus, 'listener:error');
    bus.on('job:start', async () => fail());
    // A promise of another library is not an instance of Promise.
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
    bus.on('listener:error', listener('reported'));
    bus.on('listener:error', fail);
    bus.on('listener:error', async () => fail());
    bus.on('job:start', fail);
    bus.emit('job:start', event);
    await flushEventLoop();
    assert.deepEqual(calls, ['reported']);
  });

  it('calls a listener of once() once', () => {
    bus.once('job:start', listener('once'));
    bus.emit('job:start', event);
    bus.emit('job:start', event);
    assert.deepEqual(calls, ['once']);
  });

  it('calls a listener of once() once even if it throws or emits again', () => {
    bus.once('job:start', () => {
      calls.push('once');
      bus.emit('job:start', event);
      fail();
    });
    bus.emit('job:start', event);
    bus.emit('job:start', event);
    assert.deepEqual(calls, ['once']);
  });

  it('removes a listener with off(), whether on() or once() added it', () => {
    const removed = listener('removed');
    bus.on('job:start', removed);
    bus.once('job:start', removed);
    bus.on('job:released', removed);
    bus.off('job:start', removed);
    bus.off('job:start', listener('unknown'));
    bus.emit('job:start', event);
    assert.deepEqual(calls, []);
    bus.emit('job:released', event);
    assert.deepEqual(calls, ['removed'], 'listeners of other events stay');
  });

  it('allows listeners to be added and removed while it emits', () => {
    const [removed, added] = [listener('removed'), listener('added')];
    bus.once('job:start', () => {
      bus.off('job:start', removed);
      bus.on('job:start', added);
    });
    bus.on('job:start', removed);
    bus.on('job:start', listener('last'));
    bus.emit('job:start', event);
    assert.ok(calls.includes('last'), calls.join());
    calls = [];
    bus.emit('job:start', event);
    assert.deepEqual(calls, ['last', 'added']);
  });

  it('counts the failures of each operation and reports once that they are over', () => {
    const reports: unknown[] = [];
    bus.on('worker:error', ({ operation, failures }) => reports.push([operation, failures]));
    bus.on('worker:recovered', ({ operation, failures }) => reports.push(['recovered', operation, failures]));
    bus.reportSuccess('release jobs');
    bus.reportFailure('release jobs', new Error('no primary'));
    bus.reportFailure('save progress', new Error('no primary'));
    bus.reportFailure('release jobs', new Error('no primary'));
    bus.reportSuccess('release jobs');
    bus.reportSuccess('release jobs');
    assert.deepEqual(reports, [
      ['release jobs', 1],
      ['save progress', 1],
      ['release jobs', 2],
      ['recovered', 'release jobs', 2],
    ]);
  });

  it('rejects unknown event names, with a suggestion, and listeners that are not functions', () => {
    assert.throws(() => bus.on('job:completed' as 'job:complete', () => undefined), {
      code: 'INVALID_ARGUMENT',
      message: "'job:completed' is not an event (did you mean 'job:complete'?)",
    });
    assert.throws(() => bus.on('job:complete', undefined as never), /must be a function, got undefined/);
  });
});

import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { PeriodicService } from '../../../src/runtime/periodic-service.js';
import { recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';

class Subject extends PeriodicService {
  readonly name = 'sweep';
  rounds = 0;
  act: () => Promise<number> | number = () => 1000;

  async runOnce(): Promise<number> {
    this.rounds++;
    return this.act();
  }

  get ends(): boolean {
    return this.stopping;
  }
}

describe('PeriodicService', () => {
  let clock: ManualClock;
  let events: EventBus;
  let service: Subject;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus();
    service = new Subject(clock, events);
  });

  afterEach(() => service.stop());

  it('waits as long as the round returned', async () => {
    service.start();
    await flushEventLoop();
    clock.advance(999);
    await flushEventLoop();
    assert.equal(service.rounds, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('waits in stop() for the round in progress', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await flushEventLoop();
    let stopped = false;
    const stopping = service.stop().then(() => (stopped = true));
    await flushEventLoop();
    assert.equal(stopped, false);
    assert.equal(service.ends, true, 'the round can see that it is the last');
    fire(0);
    await stopping;
    assert.equal(service.rounds, 1);
    assert.equal(clock.sleepers, 0);
  });

  it('never runs two rounds at once, also when it is started again while it stops', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await flushEventLoop();
    const stopping = service.stop();
    service.start();
    await flushEventLoop();
    assert.equal(service.rounds, 1);
    service.act = () => 1000;
    fire(0);
    await stopping;
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('runs again at once when it was woken during a round', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await flushEventLoop();
    service.wake();
    service.wake();
    service.act = () => 1000;
    fire(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 2, 'one more round for any number of wake-ups');
  });

  it('wakes within the requested time, and never later than the round returned', async () => {
    service.start();
    await flushEventLoop();
    service.wakeWithin(300);
    service.wakeWithin(500);
    clock.advance(100);
    service.wakeWithin(2000);
    clock.advance(199);
    await flushEventLoop();
    assert.deepEqual([service.rounds, clock.sleepers], [1, 1]);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(service.rounds, 2, 'the earliest counts');
    service.wakeWithin(2000);
    clock.advance(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 3);
    clock.advance(999);
    await flushEventLoop();
    assert.equal(service.rounds, 3, 'what was asked for before the round is over with it');
  });

  it('keeps a request made during a round until after it', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await flushEventLoop();
    service.wakeWithin(300);
    service.act = () => 1000;
    clock.advance(100);
    fire(1000);
    await flushEventLoop();
    clock.advance(199);
    await flushEventLoop();
    assert.equal(service.rounds, 1);
    clock.advance(1);
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('runs again at once when the requested time has passed during the round', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await flushEventLoop();
    service.wakeWithin(300);
    service.act = () => 1000;
    clock.advance(300);
    fire(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('is not woken early after a round that fails', async () => {
    service.act = () => {
      service.wake();
      if (service.rounds > 5) return 1000;
      throw new Error('no answer');
    };
    service.start();
    await flushEventLoop();
    assert.equal(service.rounds, 1);
  });

  it('knows whether it is stopping', async () => {
    assert.equal(service.ends, false, 'a round that a person starts is not stopped by anybody');
    service.start();
    assert.equal(service.ends, false);
    const stopped = service.stop();
    assert.equal(service.ends, true);
    await stopped;
  });

  it('survives errors that cannot be changed', async () => {
    const record = recordEvents(events, 'worker:trouble');
    const errors: unknown[] = [
      Object.freeze(new Error('frozen')),
      new DOMException('read-only'),
      null,
      'text',
    ];
    service.act = () => {
      throw errors.shift() as Error;
    };
    service.start();
    for (let failures = 1; errors.length > 0; failures++) {
      await flushEventLoop();
      assert.equal(record.length, failures);
      clock.advance(10_000);
    }
  });

  it('redacts credentials', async () => {
    const record = recordEvents(events, 'worker:trouble');
    service.act = () => {
      throw new Error('no answer from mongodb://root:hunter2@db');
    };
    service.start();
    await flushEventLoop();
    const { error } = record[0]?.event as { error: Error };
    assert.equal(error.message, 'no answer from mongodb://***@db');
    assert.ok(!error.stack?.includes('hunter2'));
  });

  it('reports each successful round with its duration', async () => {
    const told = recordEvents(events, 'worker:cycle');
    service.act = () => {
      if (service.rounds === 2) throw new Error('not this time');
      clock.advance(40);
      return 1000;
    };
    service.start();
    await flushEventLoop();
    clock.advance(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 2);
    assert.deepEqual(told, [{ name: 'worker:cycle', event: { operation: 'sweep', duration: 40 } }]);
  });

  it('counts only consecutive failures', async () => {
    const record = recordEvents(events, 'worker:trouble');
    let fails = true;
    service.act = () => {
      fails = !fails;
      if (!fails) throw new Error('no answer');
      return 250;
    };
    service.start();
    for (let i = 0; i < 4; i++) {
      await flushEventLoop();
      clock.advance(250);
    }
    assert.deepEqual(
      record.map(({ event }) => (event as { failures: number }).failures),
      [1, 1],
    );
  });
});

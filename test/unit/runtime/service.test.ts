import assert from 'node:assert/strict';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { PeriodicService } from '../../../src/runtime/service.js';
import { recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { turns } from '../../support/turns.js';

class Subject extends PeriodicService {
  readonly name = 'test';
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

  it('waits as long as the round said', async () => {
    service.start();
    await turns();
    clock.advance(999);
    await turns();
    assert.equal(service.rounds, 1);
    clock.advance(1);
    await turns();
    assert.equal(service.rounds, 2);
  });

  it('waits for the round in progress when it stops', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await turns();
    let stopped = false;
    const stopping = service.stop().then(() => (stopped = true));
    await turns();
    assert.equal(stopped, false);
    assert.equal(service.ends, true, 'the round can see that it is the last');
    fire(0);
    await stopping;
    assert.equal(service.rounds, 1);
    assert.equal(clock.sleepers, 0);
  });

  it('never has two rounds at once, not even when it is started again while it stops', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await turns();
    const stopping = service.stop();
    service.start();
    await turns();
    assert.equal(service.rounds, 1);
    service.act = () => 1000;
    fire(0);
    await stopping;
    await turns();
    assert.equal(service.rounds, 2);
  });

  it('goes round again at once when it was woken during a round', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await turns();
    service.wake();
    service.wake();
    service.act = () => 1000;
    fire(1000);
    await turns();
    assert.equal(service.rounds, 2, 'one more round for any number of wake-ups');
  });

  it('wakes within the time it is asked to, never later than the round said', async () => {
    service.start();
    await turns();
    service.wakeWithin(300);
    service.wakeWithin(500);
    clock.advance(100);
    service.wakeWithin(2000);
    clock.advance(199);
    await turns();
    assert.deepEqual([service.rounds, clock.sleepers], [1, 1]);
    clock.advance(1);
    await turns();
    assert.equal(service.rounds, 2, 'the earliest counts');
    service.wakeWithin(2000);
    clock.advance(1000);
    await turns();
    assert.equal(service.rounds, 3);
    clock.advance(999);
    await turns();
    assert.equal(service.rounds, 3, 'what was asked for before the round is over with it');
  });

  it('keeps what is asked during a round for after it', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await turns();
    service.wakeWithin(300);
    service.act = () => 1000;
    clock.advance(100);
    fire(1000);
    await turns();
    clock.advance(199);
    await turns();
    assert.equal(service.rounds, 1);
    clock.advance(1);
    await turns();
    assert.equal(service.rounds, 2);
  });

  it('goes round at once when that time has passed during the round', async () => {
    const { promise, fire } = signal<number>();
    service.act = () => promise;
    service.start();
    await turns();
    service.wakeWithin(300);
    service.act = () => 1000;
    clock.advance(300);
    fire(1000);
    await turns();
    assert.equal(service.rounds, 2);
  });

  it('is not hurried by a wake-up during a round that fails', async () => {
    service.act = () => {
      service.wake();
      if (service.rounds > 5) return 1000;
      throw new Error('no answer');
    };
    service.start();
    await turns();
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
      await turns();
      assert.equal(record.length, failures);
      clock.advance(10_000);
    }
  });

  it('shows no credentials', async () => {
    const record = recordEvents(events, 'worker:trouble');
    service.act = () => {
      throw new Error('no answer from mongodb://root:hunter2@db');
    };
    service.start();
    await turns();
    const { error } = record[0]?.event as { error: Error };
    assert.equal(error.message, 'no answer from mongodb://***@db');
    assert.ok(!error.stack?.includes('hunter2'));
  });

  it('tells of each round that went well, and how long it took', async () => {
    const told = recordEvents(events, 'worker:cycle');
    service.act = () => {
      if (service.rounds === 2) throw new Error('not this time');
      clock.advance(40);
      return 1000;
    };
    service.start();
    await turns();
    clock.advance(1000);
    await turns();
    assert.equal(service.rounds, 2);
    assert.deepEqual(told, [{ name: 'worker:cycle', event: { operation: 'test', duration: 40 } }]);
  });

  it('counts failures in a row only', async () => {
    const record = recordEvents(events, 'worker:trouble');
    let fails = true;
    service.act = () => {
      fails = !fails;
      if (!fails) throw new Error('no answer');
      return 250;
    };
    service.start();
    for (let i = 0; i < 4; i++) {
      await turns();
      clock.advance(250);
    }
    assert.deepEqual(
      record.map(({ event }) => (event as { failures: number }).failures),
      [1, 1],
    );
  });
});

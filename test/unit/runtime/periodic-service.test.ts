import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { PeriodicService } from '../../../src/runtime/periodic-service.js';
import { nextEvent, recordEvents, signal } from '../../support/events.js';
import { ManualClock } from '../../support/manual-clock.js';
import { flushEventLoop } from '../../support/flush-event-loop.js';
import { nextMeasurement, recordMeasurements } from '../../support/measurements.js';

class TestService extends PeriodicService {
  readonly name = 'sweep';
  rounds = 0;
  round: () => Promise<number> | number = () => 1000;

  async runOnce(): Promise<number> {
    this.rounds++;
    return this.round();
  }

  get isStopping(): boolean {
    return this.stopping;
  }

  /** Real milliseconds. */
  limit = 60_000;

  protected override get maxRoundTime(): number {
    return this.limit;
  }

  makeStep(): void {
    this.restartTimeLimit();
  }
}

describe('PeriodicService', () => {
  let clock: ManualClock;
  let events: EventBus;
  let service: TestService;

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    service = new TestService(clock, events);
  });

  afterEach(() => service.stop());

  async function start(): Promise<void> {
    service.start();
    await flushEventLoop();
  }

  /** Starts the service with a round that lasts until the returned function is called with its result. */
  async function startBlockedRound(): Promise<(delay: number) => void> {
    const { promise, fire } = signal<number>();
    service.round = () => promise;
    await start();
    return fire;
  }

  async function roundsAfter(ms: number): Promise<number> {
    clock.advance(ms);
    await flushEventLoop();
    return service.rounds;
  }

  it('waits as long as the round returned', async () => {
    await start();
    assert.equal(await roundsAfter(999), 1);
    assert.equal(await roundsAfter(1), 2);
  });

  it('waits in stop() for the round in progress', async () => {
    const endRound = await startBlockedRound();
    let stopped = false;
    const stopping = service.stop().then(() => (stopped = true));
    await flushEventLoop();
    assert.equal(stopped, false);
    assert.equal(service.isStopping, true, 'the round can see that it is the last one');
    endRound(0);
    await stopping;
    assert.equal(service.rounds, 1);
    assert.equal(clock.sleepers, 0);
  });

  it('never runs two rounds at once, even if it is started again while it stops', async () => {
    const endRound = await startBlockedRound();
    const stopping = service.stop();
    await start();
    assert.equal(service.rounds, 1);
    service.round = () => 1000;
    endRound(0);
    await stopping;
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('runs again at once when it was woken during a round', async () => {
    const endRound = await startBlockedRound();
    service.wake();
    service.wake();
    service.round = () => 1000;
    endRound(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 2, 'one more round for any number of wake-ups');
  });

  it('wakes within the requested time, and never later than the round returned', async () => {
    await start();
    service.wakeWithin(300);
    service.wakeWithin(500);
    clock.advance(100);
    service.wakeWithin(2000);
    clock.advance(199);
    await flushEventLoop();
    assert.deepEqual([service.rounds, clock.sleepers], [1, 1]);
    assert.equal(await roundsAfter(1), 2, 'the earliest request counts');
    service.wakeWithin(2000);
    assert.equal(await roundsAfter(1000), 3);
    assert.equal(await roundsAfter(999), 3, 'a round ends the requests made before it');
  });

  it('keeps a request that was made during a round', async () => {
    const endRound = await startBlockedRound();
    service.wakeWithin(300);
    service.round = () => 1000;
    clock.advance(100);
    endRound(1000);
    await flushEventLoop();
    assert.equal(await roundsAfter(199), 1);
    assert.equal(await roundsAfter(1), 2);
  });

  it('runs again at once when the requested time has passed during the round', async () => {
    const endRound = await startBlockedRound();
    service.wakeWithin(300);
    service.round = () => 1000;
    clock.advance(300);
    endRound(1000);
    await flushEventLoop();
    assert.equal(service.rounds, 2);
  });

  it('is not woken early after a round that fails', async () => {
    service.round = () => {
      service.wake();
      if (service.rounds > 5) return 1000;
      throw new Error('no answer');
    };
    await start();
    assert.equal(service.rounds, 1);
  });

  it('exposes to its rounds whether it is stopping', async () => {
    assert.equal(service.isStopping, false, 'not before it was started');
    service.start();
    assert.equal(service.isStopping, false);
    const stopped = service.stop();
    assert.equal(service.isStopping, true);
    await stopped;
  });

  it('survives errors that are read-only or not errors', async () => {
    const record = recordEvents(events, 'worker:error');
    const errors: unknown[] = [
      Object.freeze(new Error('frozen')),
      new DOMException('read-only'),
      null,
      'text',
    ];
    service.round = () => {
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
    const record = recordEvents(events, 'worker:error');
    service.round = () => {
      throw new Error('no answer from mongodb://root:hunter2@db');
    };
    await start();
    const { error } = record[0]?.event as { error: Error };
    assert.equal(error.message, 'no answer from mongodb://***@db');
    assert.ok(!error.stack?.includes('hunter2'));
  });

  it('reports each successful round with its duration', async () => {
    const rounds = recordMeasurements(events, 'round');
    service.round = () => {
      if (service.rounds === 2) throw new Error('not this time');
      clock.advance(40);
      return 1000;
    };
    await start();
    assert.equal(await roundsAfter(1000), 2);
    assert.deepEqual(rounds, [{ operation: 'sweep', duration: 40 }]);
  });

  it('counts only consecutive failures', async () => {
    const record = recordEvents(events, 'worker:error');
    let fails = true;
    service.round = () => {
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

  it('reports a round that hangs and starts another, and ignores how the late one ends', async () => {
    const record = recordEvents(events, 'worker:error', 'worker:recovered');
    const reported = nextEvent(events, 'worker:error');
    service.limit = 20;
    const endRound = await startBlockedRound();
    const { operation, error, failures, retryIn } = await reported;
    await flushEventLoop();
    assert.match(error.message, /the round hangs/);
    assert.deepEqual([operation, failures, retryIn], ['sweep', 1, 250]);
    service.limit = 60_000;
    service.round = () => 1000;
    assert.equal(await roundsAfter(250), 2);
    endRound(0);
    await flushEventLoop();
    assert.equal(service.rounds, 2, 'the delay that the late round returned does not count');
    assert.equal(await roundsAfter(1000), 3);
    assert.deepEqual(
      record.map(({ name }) => name),
      ['worker:error', 'worker:recovered'],
    );
  });

  it('gives a round time as long as it makes steps', async () => {
    const record = recordEvents(events, 'worker:error');
    const startedAt = performance.now();
    service.limit = 100;
    service.round = async () => {
      while (performance.now() - startedAt < 300) {
        await pause(10);
        service.makeStep();
      }
      return 1000;
    };
    const measured = nextMeasurement(events, 'round');
    await start();
    await measured;
    assert.deepEqual(record, []);
  });

  it('does not wait in stop() for a round that hangs', async () => {
    const reported = nextEvent(events, 'worker:error');
    const endRound = await startBlockedRound();
    service.limit = 20;
    await service.stop();
    assert.match((await reported).error.message, /the round hangs/);
    endRound(0);
    await flushEventLoop();
    assert.equal(service.rounds, 1);
  });
});

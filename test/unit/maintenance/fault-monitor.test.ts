import assert from 'node:assert/strict';
import type { ChronosError } from '../../../src/domain/errors.js';
import { FaultMonitor } from '../../../src/maintenance/fault-monitor.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { ManualClock } from '../../support/manual-clock.js';

describe('FaultMonitor', () => {
  const SECOND = 1000;
  let clock: ManualClock;
  let events: EventBus;
  let monitor: FaultMonitor;
  let faults: ChronosError[];
  let missing: string[];

  beforeEach(() => {
    clock = new ManualClock();
    events = new EventBus('worker');
    [faults, missing] = [[], []];
    const unchanged = { different: [], foreign: [], lacksTtlIndex: false, hasValidator: true };
    monitor = new FaultMonitor({
      ...{ clock, events, options: { heartbeatInterval: 10 * SECOND, lockTimeout: 30 * SECOND } },
      store: {
        readInstallation: async () => null,
        inspectCollections: async () => [{ collection: 'jobs', exists: true, missing, ...unchanged }],
      },
    });
    monitor.onFault((fault) => faults.push(fault));
    monitor.start();
  });

  afterEach(() => monitor.stop());

  const deny = (operation: 'settle' | 'claim jobs' | 'watch changes'): void =>
    events.reportFailure(operation, Object.assign(new Error('not authorized { update: 1 }'), { code: 13 }));

  it('reports an operation that was denied for longer than lockTimeout [F8]', () => {
    deny('settle');
    clock.advance(30 * SECOND);
    deny('settle');
    assert.equal(faults.length, 0);
    clock.advance(1);
    deny('settle');
    assert.equal(faults.at(0)?.code, 'NOT_AUTHORIZED');
    assert.match(
      faults.at(0)?.message ?? '',
      /denied the operation 'settle' .* for 30 s: not authorized\. Grant/,
    );
  });

  it('counts again after a success, and after an error of another kind [F8]', () => {
    for (const interrupt of [
      () => events.reportSuccess('settle'),
      () => events.reportFailure('settle', new Error('no primary')),
    ]) {
      deny('settle');
      clock.advance(20 * SECOND);
      interrupt();
      deny('settle');
      clock.advance(20 * SECOND);
      deny('settle');
      events.reportSuccess('settle');
    }
    assert.deepEqual(faults, []);
  });

  it('counts each operation for itself [F8]', () => {
    deny('settle');
    clock.advance(40 * SECOND);
    deny('claim jobs');
    assert.deepEqual(faults, []);
  });

  it('ignores an operation that a worker can do without [F8]', () => {
    deny('watch changes');
    clock.advance(40 * SECOND);
    deny('watch changes');
    assert.deepEqual(faults, []);
  });

  it('observes nothing after stop() [F8]', async () => {
    deny('settle');
    await monitor.stop();
    clock.advance(40 * SECOND);
    deny('settle');
    assert.deepEqual(faults, []);
  });

  it('reports a missing index when it is still missing in the next round, but not a missing TTL index [F8]', async () => {
    const round = async (): Promise<number> => {
      clock.advance(60 * SECOND);
      await monitor.runOnce();
      return faults.length;
    };
    await monitor.stop();
    missing = ['expiry'];
    assert.deepEqual([await round(), await round()], [0, 0]);
    missing = ['claim'];
    assert.equal(await round(), 0);
    missing = [];
    assert.equal(await round(), 0);
    missing = ['claim', 'locks'];
    assert.deepEqual([await round(), await round()], [0, 1]);
    assert.equal(faults[0]?.code, 'NOT_INSTALLED');
    assert.match(faults[0]?.message ?? '', /jobs\.claim, jobs\.locks/);
  });
});

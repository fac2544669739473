import assert from 'node:assert/strict';
import type { LifecycleState } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { SchedulerState } from '../../../src/runtime/scheduler-state.js';
import { recordEvents } from '../../support/events.js';

const STATES: LifecycleState[] = ['Stopped', 'Starting', 'Running', 'Stopping', 'Error'];

/** A legal way from Stopped into each state. */
const WAYS: Record<LifecycleState, LifecycleState[]> = {
  Stopped: [],
  Starting: ['Starting'],
  Running: ['Starting', 'Running'],
  Stopping: ['Starting', 'Running', 'Stopping'],
  Error: ['Starting', 'Error'],
};

function lifeIn(state: LifecycleState, events = new EventBus()): SchedulerState {
  const life = new SchedulerState(events);
  for (const step of WAYS[state]) life.enter(step);
  return life;
}

describe('SchedulerState', () => {
  it('is Stopped at first and emits every change', () => {
    const events = new EventBus();
    const record = recordEvents(events, 'worker:state');
    const life = lifeIn('Stopping', events);
    life.enter('Stopped');
    assert.deepEqual(
      record.map(({ event }) => event),
      [
        { state: 'Starting', previous: 'Stopped' },
        { state: 'Running', previous: 'Starting' },
        { state: 'Stopping', previous: 'Running' },
        { state: 'Stopped', previous: 'Stopping' },
      ],
    );
  });

  it('emits the error with the state Error', () => {
    const events = new EventBus();
    const record = recordEvents(events, 'worker:state');
    const error = new Error('out of reach');
    lifeIn('Starting', events).enter('Error', error);
    assert.deepEqual(record.at(-1)?.event, { state: 'Error', previous: 'Starting', error });
  });

  it('has changed before its listeners are called', () => {
    const events = new EventBus();
    const life = new SchedulerState(events);
    let seen: LifecycleState | undefined;
    events.on('worker:state', () => (seen = life.current));
    life.enter('Starting');
    assert.equal(seen, 'Starting');
  });

  for (const from of STATES) {
    it(`rejects an illegal change from ${from}`, () => {
      for (const to of ['Running', 'Stopped', from] as const) {
        const legal = (from === 'Starting' && to === 'Running') || (from === 'Stopping' && to === 'Stopped');
        if (legal) continue;
        const life = lifeIn(from);
        assert.throws(() => life.enter(to), { code: 'WRONG_STATE' });
        assert.equal(life.current, from);
      }
    });
  }

  it('can be started again after an error', () => {
    const life = lifeIn('Error');
    life.enter('Starting');
    assert.equal(life.current, 'Starting');
  });
});

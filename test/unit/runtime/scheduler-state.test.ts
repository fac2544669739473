import assert from 'node:assert/strict';
import type { LifecycleState } from '../../../src/domain/events.js';
import { EventBus } from '../../../src/runtime/event-bus.js';
import { SchedulerState } from '../../../src/runtime/scheduler-state.js';
import { recordEvents } from '../../support/events.js';

const STATES: LifecycleState[] = ['Stopped', 'Starting', 'Running', 'Stopping', 'Error'];

/** Legal changes that lead from Stopped to each state. */
const PATHS: Record<LifecycleState, LifecycleState[]> = {
  Stopped: [],
  Starting: ['Starting'],
  Running: ['Starting', 'Running'],
  Stopping: ['Starting', 'Running', 'Stopping'],
  Error: ['Starting', 'Error'],
};

function stateAt(target: LifecycleState, events = new EventBus('worker')): SchedulerState {
  const state = new SchedulerState(events);
  for (const step of PATHS[target]) state.enter(step);
  return state;
}

describe('SchedulerState', () => {
  it('is Stopped at first and emits every change', () => {
    const events = new EventBus('worker');
    const record = recordEvents(events, 'worker:state');
    const state = stateAt('Stopping', events);
    state.enter('Stopped');
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
    const events = new EventBus('worker');
    const record = recordEvents(events, 'worker:state');
    const error = new Error('out of reach');
    stateAt('Starting', events).enter('Error', error);
    assert.deepEqual(record.at(-1)?.event, { state: 'Error', previous: 'Starting', error });
  });

  it('has changed before its listeners are called', () => {
    const events = new EventBus('worker');
    const state = new SchedulerState(events);
    let seen: LifecycleState | undefined;
    events.on('worker:state', () => (seen = state.current));
    state.enter('Starting');
    assert.equal(seen, 'Starting');
  });

  for (const from of STATES) {
    it(`rejects an illegal change from ${from}`, () => {
      for (const to of ['Running', 'Stopped', from] as const) {
        const legal =
          (from === 'Starting' && to === 'Running') ||
          (['Stopping', 'Error'].includes(from) && to === 'Stopped');
        if (legal) continue;
        const state = stateAt(from);
        assert.throws(() => state.enter(to), { code: 'WRONG_STATE' });
        assert.equal(state.current, from);
      }
    });
  }

  it('can be started again after an error', () => {
    const state = stateAt('Error');
    state.enter('Starting');
    assert.equal(state.current, 'Starting');
  });
});

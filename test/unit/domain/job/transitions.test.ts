import assert from 'node:assert/strict';
import {
  FINISHED_STATUSES,
  isFinished,
  JOB_STATUSES,
  type JobStatus,
} from '../../../../src/domain/job/job.js';
import { isRescheduled, type OutcomeKind, TRANSITION_OF } from '../../../../src/domain/job/outcome.js';
import { type Transition, type TransitionName, TRANSITIONS } from '../../../../src/domain/job/transitions.js';
import { explainChange } from '../../../support/invariants.js';

const entries = Object.entries<Transition>(TRANSITIONS) as [TransitionName, Transition][];

/** Invariant 3: claim, sweep, give-back, cancel of a job that does not run, explicit retry; never otherwise. */
const CHANGES_OF_OWNER: TransitionName[] = [
  'claim',
  'buffer',
  'recover',
  'recoverFailed',
  'recoverCancelled',
  'giveBack',
  'cancel',
  'retry',
];

describe('transitions', () => {
  for (const [name, { fence }] of entries) {
    const rises = CHANGES_OF_OWNER.includes(name);
    it(`${name} ${rises ? 'raises the fence by one' : 'leaves the fence alone'}`, () => {
      assert.equal(fence, rises ? 1 : 0);
    });
  }

  it('leave a finished status only by an explicit retry', () => {
    for (const [name, { from }] of entries) {
      if (name !== 'retry') assert.ok(!from.some(isFinished), name);
    }
    assert.deepEqual([...TRANSITIONS.retry.from].sort(), [...FINISHED_STATUSES].sort());
  });

  it('claim nothing but what is SCHEDULED, straight or by way of the buffer', () => {
    assert.deepEqual(explainChange('SCHEDULED', 'RUNNING', 1), ['claim']);
    assert.deepEqual(explainChange('SCHEDULED', 'QUEUED', 1), ['buffer']);
    for (const from of JOB_STATUSES.filter((status) => status !== 'SCHEDULED')) {
      assert.deepEqual(explainChange(from, 'RUNNING', 1), []);
      assert.deepEqual(explainChange(from, 'QUEUED', 1), []);
    }
  });

  it('settle from QUEUED as from RUNNING, because the mark of a start may be late', () => {
    for (const name of Object.values(TRANSITION_OF)) {
      assert.deepEqual([...TRANSITIONS[name].from].sort(), ['QUEUED', 'RUNNING'], name);
    }
  });

  it('lead from the first status to every other', () => {
    const reached = new Set<JobStatus>(['PENDING']);
    for (let before = 0; before < reached.size;) {
      before = reached.size;
      for (const [, { from, to }] of entries) if (from.some((status) => reached.has(status))) reached.add(to);
    }
    assert.deepEqual([...reached].sort(), [...JOB_STATUSES].sort());
  });
});

describe('explainChange', () => {
  it('names every transition by each of its ways', () => {
    for (const [name, { from, to, fence }] of entries) {
      for (const status of from) assert.ok(explainChange(status, to, fence).includes(name));
    }
  });

  it('tells a settle from a give-back by the fence', () => {
    assert.deepEqual(explainChange('RUNNING', 'SCHEDULED', 0), ['retryLater', 'snooze']);
    assert.deepEqual(explainChange('RUNNING', 'SCHEDULED', 1), ['giveBack', 'recover']);
  });

  it('explains nothing illegal', () => {
    assert.deepEqual(explainChange('COMPLETED', 'RUNNING', 1), []);
    assert.deepEqual(explainChange('SCHEDULED', 'COMPLETED', 0), []);
    assert.deepEqual(explainChange('RUNNING', 'COMPLETED', 1), []);
    assert.deepEqual(explainChange('FAILED', 'SCHEDULED', 0), []);
    assert.deepEqual(explainChange('SCHEDULED', 'RUNNING', 2), []);
    assert.deepEqual(explainChange('RUNNING', 'PENDING', 0), []);
  });
});

describe('goesOn', () => {
  it('is true for what comes back, and for nothing else', () => {
    const kinds = Object.keys(TRANSITION_OF) as OutcomeKind[];
    // Only the kind matters.
    const on = kinds.filter((kind) => isRescheduled({ kind } as Parameters<typeof isRescheduled>[0]));
    assert.deepEqual(on.sort(), ['givenBack', 'retry', 'snoozed']);
  });
});

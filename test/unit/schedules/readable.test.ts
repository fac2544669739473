import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../../src/domain/schedule.js';
import { unreadable } from '../../../src/schedules/readable.js';
import { aSchedule } from '../../support/calendar.js';
import { START } from '../../support/instants.js';

const RUN = { kind: 'run', id: 's@1', at: START, since: START };

describe('readable', () => {
  it('F5 a schedule as it is stored', () => {
    assert.equal(unreadable(aSchedule()), undefined);
    assert.equal(unreadable(aSchedule({ rule: null, nextRunAt: null, queue: 'q', maxRuns: 3 })), undefined);
    assert.equal(unreadable(aSchedule({ owed: [RUN] as ScheduleDocument['owed'] })), undefined);
  });

  const broken: [field: string, values: unknown[]][] = [
    ['taskType', [undefined, null, 1, {}]],
    ['rule', [undefined, 'every day', 5]],
    ['queue', [undefined, 1, {}]],
    ['priority', [undefined, null, '5', -1, NaN]],
    ['overlap', [undefined, null, 'sometimes', 'constructor', {}]],
    ['misfire', [undefined, null, 'skip', {}, { policy: 'skip' }, { policy: 'never', within: 1, cap: 1 }]],
    [
      'misfire',
      [
        { policy: 'all', within: '1d', cap: 1 },
        { policy: 'all', within: 1, cap: -1 },
      ],
    ],
    ['jitter', [undefined, null, '1s', -5]],
    ['runs', [undefined, null, 'many', -1]],
    ['maxRuns', [undefined, 'few', -1]],
    ['anchor', [undefined, null, '2026-01-01', new Date(NaN)]],
    ['nextRunAt', [undefined, 5, '2026-01-01', new Date(NaN)]],
    ['owed', [undefined, null, {}, [null], ['run'], [{}], [{ ...RUN, kind: 'other' }]]],
    ['owed', [[{ ...RUN, id: 5 }], [{ ...RUN, at: '2026-01-01' }], [RUN, { ...RUN, at: null }]]],
  ];
  for (const [field, values] of broken) {
    it(`F5 without a good '${field}' it is not, and the reason says so`, () => {
      for (const value of values) {
        const document: unknown = { ...aSchedule(), [field]: value };
        assert.equal(unreadable(document), `${field} cannot be read`, JSON.stringify(value));
      }
    });
  }

  it('F5 every field that is no good is named', () => {
    const reason = unreadable({ ...aSchedule(), taskType: 1, misfire: null, anchor: 'long ago' });
    assert.equal(reason, 'taskType, misfire, anchor cannot be read');
    assert.match(unreadable({}) ?? '', /taskType.*nextRunAt.*owed/);
  });
});

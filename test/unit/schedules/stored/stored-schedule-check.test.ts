import assert from 'node:assert/strict';
import type { ScheduleDocument } from '../../../../src/domain/schedule/schedule.js';
import { findMalformation } from '../../../../src/schedules/stored/stored-schedule-check.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { START } from '../../../support/instants.js';

const RUN = { kind: 'run', id: 's@1', at: START, since: START };

describe('findMalformation', () => {
  it('returns undefined for a well-formed schedule [F5]', () => {
    assert.equal(findMalformation(aSchedule()), undefined);
    assert.equal(
      findMalformation(aSchedule({ rule: null, nextRunAt: null, queue: 'q', maxRuns: 3 })),
      undefined,
    );
    assert.equal(findMalformation(aSchedule({ pending: [RUN] as ScheduleDocument['pending'] })), undefined);
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
    [
      'misfire',
      [
        { policy: 'all', within: 1, cap: 1001 },
        { policy: 'all', within: 1e13, cap: 1 },
      ],
    ],
    ['owner', [undefined, null, 'me']],
    ['rev', [undefined, '1', NaN]],
    ['environments', [undefined, null, 'test', [5]]],
    ['paused', [undefined, true, {}, { at: 'now', by: null, reason: null }]],
    ['retries', [undefined, 5, { max: 'x' }, { base: -1 }, { base: '1s' }]],
    ['timeout', [undefined, '1s', -1, Infinity]],
    ['jitter', [undefined, null, '1s', -5]],
    ['runs', [undefined, null, 'many', -1]],
    ['maxRuns', [undefined, 'few', -1]],
    ['anchor', [undefined, null, '2026-01-01', new Date(NaN)]],
    ['nextRunAt', [undefined, 5, '2026-01-01', new Date(NaN)]],
    ['pending', [undefined, null, {}, [null], ['run'], [{}], [{ ...RUN, kind: 'other' }]]],
    ['pending', [[{ ...RUN, id: 5 }], [{ ...RUN, at: '2026-01-01' }], [RUN, { ...RUN, at: null }]]],
  ];
  for (const [field, values] of broken) {
    it(`describes what is wrong with a malformed '${field}' [F5]`, () => {
      for (const value of values) {
        const document: unknown = { ...aSchedule(), [field]: value };
        assert.match(
          findMalformation(document) ?? '',
          new RegExp(`^${field}\\S* must be [^;]+$`),
          String(value),
        );
      }
    });
  }

  it('names every malformed field [F5]', () => {
    const reason = findMalformation({ ...aSchedule(), taskType: 1, misfire: null, anchor: 'long ago' });
    assert.equal(
      reason,
      "taskType must be a string, got number; misfire must be { policy, within, cap } with milliseconds and a number up to 1000, got null; anchor must be a date, got 'long ago'",
    );
    assert.match(findMalformation({}) ?? '', /taskType.*nextRunAt.*pending/);
  });
});

import assert from 'node:assert/strict';
import { jobState } from '../../../../src/domain/job/state.js';
import type { Facts, ExplainCheck } from '../../../../src/operations/explain/check.js';
import { explain, type Explanation } from '../../../../src/operations/explain/explain.js';
import { toWorkerView } from '../../../../src/operations/lists.js';
import type { WorkerDocument } from '../../../../src/store/schema/system-schemas.js';
import { aJob } from '../../../support/factories/job.js';
import { aWorker } from '../../../support/factories/worker.js';
import { aSchedule } from '../../../support/factories/schedule.js';
import { timeAfter, START } from '../../../support/instants.js';

const ERROR = { name: 'TypeError', message: 'no such address', code: null, stack: null };

function facts(fields: Partial<Facts> = {}, ...workers: Partial<WorkerDocument>[]): Facts {
  return {
    ...{ id: fields.job?._id ?? 'job', now: START, job: null, occurrence: null, schedule: null },
    ...{ scheduleError: null, waitsFor: null, suspects: [] },
    ...{ active: null, skip: null, workers: workers.map((worker) => toWorkerView(aWorker(worker), START)) },
    ...fields,
  };
}

/** An occurrence without a job. */
function anOccurrence(fields: Partial<Facts>, at = timeAfter(3_600_000)): Facts {
  return facts({ id: `s@${at.toISOString()}`, occurrence: at, schedule: aSchedule(), ...fields }, {});
}

describe('explain', () => {
  const minute = timeAfter(60_000);
  const cases: [string, Facts, string | null, RegExp, Date | null][] = [
    ['a job that can run', facts({ job: aJob() }, {}), null, /^Due since 2026.*Nothing keeps it/, null],
    [
      'a held job',
      facts({ job: aJob({ status: 'PENDING', held: { reason: 'look', at: START } }) }, {}),
      'held',
      /^It is held since .*: look; let it run again with: chronos jobs unhold job-\d+\.$/,
      null,
    ],
    [
      'a job that waits for another run of its single-instance schedule',
      facts(
        {
          job: aJob({ status: 'PENDING', waitingFor: 's' }),
          waitsFor: aJob({ _id: 's@1', status: 'RUNNING' }),
        },
        {},
      ),
      'singleInstance',
      /^It waits until s@1 ends \(RUNNING since .*\): at most one run of 's' may be active/,
      null,
    ],
    [
      'a job that is due later',
      facts({ job: aJob({ nextRunAt: minute }) }, {}),
      'due',
      /^Not due until 2026-01-01T00:01:00\.000Z \(in 1 min\)\.$/,
      minute,
    ],
    [
      'a retry',
      facts({ job: aJob({ nextRunAt: minute, attempts: 2, error: ERROR }) }, {}),
      'due',
      /^Retrying after attempt 2 failed \(TypeError: no such address\) at 2026.*in 1 min/,
      minute,
    ],
    [
      'a suspect behind another',
      facts({ job: aJob({ crashes: 2 }), suspects: [{ _id: 'other', lockedBy: 'worker' }] }, { running: 1 }),
      'suspect',
      /^Its process died 2 times while it ran, .* only one such job at a time: the worker that could run it is running other\.$/,
      null,
    ],
    [
      'a suspect behind others, beside a worker without a free slot',
      facts(
        {
          job: aJob({ lostWhileQueued: 1 }),
          suspects: ['a', 'b'].map((name) => ({ _id: `job-of-${name}`, lockedBy: name })),
        },
        ...[
          { _id: 'a', running: 1 },
          { _id: 'b', running: 1 },
          { _id: 'c', running: 5 },
        ],
      ),
      'suspect',
      /^Its worker died 1 time before it started, .*: all 2 workers .*job-of-a/,
      null,
    ],
    [
      'a suspect that another worker can take',
      facts(
        { job: aJob({ crashes: 1 }), suspects: [{ _id: 'other', lockedBy: 'a' }] },
        ...[{ _id: 'a', running: 1 }, { _id: 'b' }],
      ),
      null,
      /Nothing keeps it/,
      null,
    ],
    [
      'a job that is not a suspect, while a suspect runs',
      facts({ job: aJob(), suspects: [{ _id: 'other', lockedBy: 'worker' }] }, { running: 1 }),
      null,
      /Nothing keeps it/,
      null,
    ],
    ['a job without live workers', facts({ job: aJob() }), 'alive', /^No worker is alive/, null],
    [
      'no handler',
      facts({ job: aJob({ taskType: 'sendMial' }) }, { taskTypes: ['sendMail'] }),
      'handler',
      /^No live worker has a handler for 'sendMial' \(the closest known type is 'sendMail'\)\.$/,
      null,
    ],
    [
      'no handler, none near',
      facts({ job: aJob({ taskType: 'sendMial' }) }, {}),
      'handler',
      /'sendMial'\.$/,
      null,
    ],
    [
      'no queue',
      facts({ job: aJob({ queue: 'mail' }) }, { queues: ['b', 'a'] }),
      'queue',
      /^No live worker serves its queue 'mail' \(they serve: a, b\)/,
      null,
    ],
    [
      'queue and handler on different workers',
      facts({ job: aJob({ queue: 'mail' }) }, { _id: 'a' }, { _id: 'b', queues: ['mail'], taskTypes: ['x'] }),
      'queue',
      /^No live worker both serves its queue 'mail' and has/,
      null,
    ],
    [
      'all busy',
      facts({ job: aJob() }, { running: 5 }, { _id: 'b', running: 6 }, { _id: 'c', queues: ['x'] }),
      'busy',
      /all 2 workers that can run it are busy \(10 slots taken\)/,
      null,
    ],
    [
      'running',
      facts({ job: aJob({ status: 'RUNNING', progress: { value: 40, note: 'halfway', at: START } }) }, {}),
      'running',
      /^It is running in worker worker since .*, attempt 1, progress 40: halfway\.$/,
      START,
    ],
    [
      'a running job with a cancel request',
      facts({ job: aJob({ status: 'RUNNING', cancelRequested: { reason: null, at: START } }) }),
      'running',
      /asked to cancel it at/,
      START,
    ],
    ['prefetched', facts({ job: aJob({ status: 'QUEUED' }) }), 'prefetched', /prefetched it since/, START],
    [
      'lock expired',
      facts({ job: aJob({ status: 'RUNNING', lockedUntil: timeAfter(-1000) }) }, {}),
      'lockExpired',
      /expired at .*1 s ago.*next sweep/,
      null,
    ],
    [
      'lock expired, no live workers',
      facts({ job: aJob({ status: 'QUEUED', lockedUntil: timeAfter(-1000) }) }),
      'lockExpired',
      /start one/,
      null,
    ],
    [
      'completed',
      facts({ job: aJob({ status: 'COMPLETED' }) }),
      'finished',
      /^It completed at 2026[^:]*:00:00\.000Z \(0 ms ago\)\.$/,
      START,
    ],
    [
      'failed',
      facts({ job: aJob({ status: 'FAILED', error: ERROR }) }),
      'finished',
      /^It failed for good after 3 attempts at .*: no such address\.$/,
      START,
    ],
    [
      'cancelled',
      facts({ job: aJob({ status: 'CANCELLED', cancelRequested: { reason: 'a mistake', at: START } }) }),
      'finished',
      /^It was cancelled at .*: a mistake\.$/,
      START,
    ],
    [
      'skipped by a filter',
      facts({ job: aJob({ status: 'CANCELLED', skipReason: 'a holiday' }) }),
      'finished',
      /filter.*: a holiday\.$/,
      START,
    ],
    [
      'a future occurrence',
      anOccurrence({}),
      'noJobYet',
      /^Not due until 2026-01-01T01:00:00\.000Z \(in 1 h\)/,
      timeAfter(3_600_000),
    ],
    [
      'an occurrence after the next',
      anOccurrence({}, timeAfter(7_200_000)),
      'noJobYet',
      /^Not due until 2026-01-01T02:00/,
      timeAfter(7_200_000),
    ],
    [
      'an instant between two occurrences',
      anOccurrence({}, timeAfter(5_400_000)),
      'noOccurrence',
      /'s' has no occurrence at 2026-01-01T01:30:00\.000Z; the next one is 2026-01-01T02:00/,
      timeAfter(7_200_000),
    ],
    [
      'an instant after the last occurrence',
      anOccurrence(
        {
          schedule: aSchedule({ rule: { cron: '0 * * * *', timezone: 'UTC', endsAt: timeAfter(5_400_000) } }),
        },
        timeAfter(7_200_000),
      ),
      'noOccurrence',
      /there are no later ones/,
      null,
    ],
    [
      'an instant after the end of the calendar',
      anOccurrence({}, new Date(8.64e15)),
      'noOccurrence',
      /2757/,
      null,
    ],
    [
      'an invalid rule',
      anOccurrence({ schedule: aSchedule({ rule: { cron: 'x', timezone: 'UTC' } }) }, timeAfter(7_200_000)),
      'noOccurrence',
      /The rule of its schedule 's' is invalid: /,
      null,
    ],
    [
      'a malformed schedule',
      anOccurrence({ schedule: null, scheduleError: 'priority must be a number' }),
      'invalidSchedule',
      /its schedule 's' is malformed: priority/,
      null,
    ],
    [
      'no occurrence',
      anOccurrence({}, timeAfter(-1)),
      'noJobYet',
      /is not an occurrence of 's'/,
      timeAfter(3_600_000),
    ],
    [
      'a due occurrence without live workers',
      anOccurrence({ schedule: aSchedule({ nextRunAt: timeAfter(-1000) }), workers: [] }, timeAfter(-1000)),
      'noJobYet',
      /no worker is alive to create it/,
      null,
    ],
    [
      'a definition that no live worker has',
      anOccurrence(
        { schedule: aSchedule({ owner: 'code', taskType: 's', nextRunAt: timeAfter(-1000) }) },
        timeAfter(-1000),
      ),
      'noJobYet',
      /no live worker has the definition 's'/,
      null,
    ],
    [
      'a paused schedule',
      anOccurrence({
        schedule: aSchedule({ isActive: false, paused: { at: START, by: 'ada', reason: 'moving' } }),
      }),
      'schedulePaused',
      /^Its schedule 's' has been paused since .* by ada: moving; resume it\.$/,
      null,
    ],
    [
      'a disabled schedule',
      anOccurrence({ schedule: aSchedule({ disabledReason: 'bad cron' }) }),
      'schedulePaused',
      /is disabled: bad cron/,
      null,
    ],
    [
      'an earlier run that is still running',
      anOccurrence(
        {
          schedule: aSchedule({ nextRunAt: timeAfter(-1000) }),
          active: {
            _id: 's@before',
            status: 'RUNNING',
            createdAt: START,
            startedAt: START,
            finishedAt: null,
          },
        },
        timeAfter(-1000),
      ),
      'runningElsewhere',
      /^The previous run, s@before, has been RUNNING since .*must not overlap: it is skipped unless/,
      null,
    ],
    [
      'skipped',
      anOccurrence({
        skip: {
          _id: 'x',
          scheduleId: 's',
          at: START,
          until: minute,
          count: 1,
          reason: 'overlap',
          activeId: 's@before',
          runningFor: 5000,
          since: START,
          expiresAt: minute,
        },
      }),
      'skipped',
      /\(overlap\): s@before was still running \(for 5 s\)/,
      START,
    ],
  ];

  for (const [title, input, check, sentence, at] of cases) {
    it(`explains ${title} [B11]`, () => {
      const explanation = explain(input);
      assert.deepEqual([explanation.check, explanation.at], [check, at]);
      assert.match(explanation.sentence, sentence);
      assert.equal(explanation.state, input.job === null ? null : jobState(input.job, input.now));
    });
  }

  it('a pending occurrence starts when the previous run ends [B11]', () => {
    const id = 's@pending';
    const pending = [{ kind: 'run' as const, id, at: START, since: START }];
    const schedule = aSchedule({ overlap: 'queue', active: 's@before', pending });
    const active = {
      _id: 's@before',
      status: 'RUNNING' as const,
      createdAt: START,
      startedAt: START,
      finishedAt: null,
    };
    assert.match(explain(facts({ id, schedule, active }, {})).sentence, /it starts when that run ends/);
    assert.match(explain(facts({ id, schedule }, {})).sentence, /planned and has no job yet/);
  });

  it('makes every check in order, names the first that fails, and shows the others that fail [B11]', () => {
    const { check, checked } = explain(
      facts({ job: aJob({ nextRunAt: timeAfter(60_000), taskType: 'x' }) }, {}),
    );
    assert.equal(check, 'due');
    assert.deepEqual(
      checked.filter(({ passed }) => !passed).map(({ check: name }) => name),
      ['due', 'handler'],
    );
    assert.ok(checked.every(({ sentence }) => sentence.endsWith('.')));
    const ended: Explanation = explain(facts({ job: aJob({ status: 'COMPLETED' }) }));
    assert.deepEqual(
      ended.checked.map(({ check: name }) => name),
      ['finished'],
    );
  });

  it('an additional check is one more entry of the list [B11]', () => {
    const limit: ExplainCheck = {
      name: 'limit',
      passed: 'Nothing limits it.',
      explain: () => ({ sentence: 'Its lane is full.', at: null }),
    };
    assert.equal(explain(facts({ job: aJob() }, {}), [limit]).sentence, 'Its lane is full.');
  });
});

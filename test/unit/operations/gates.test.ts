import assert from 'node:assert/strict';
import { explain, type Explanation } from '../../../src/operations/explain.js';
import type { Facts, Gate } from '../../../src/operations/gates/gate.js';
import { workerView } from '../../../src/operations/workers.js';
import type { WorkerDocument } from '../../../src/store/documents.js';
import { aJob } from '../../support/a-job.js';
import { aWorker } from '../../support/a-worker.js';
import { aSchedule } from '../../support/calendar.js';
import { after, START } from '../../support/instants.js';

const ERROR = { name: 'TypeError', message: 'no such address', code: null, stack: null };

function facts(fields: Partial<Facts> = {}, ...workers: Partial<WorkerDocument>[]): Facts {
  return {
    ...{ id: fields.job?._id ?? 'job', now: START, job: null, occurrence: null, schedule: null },
    ...{ scheduleFault: null, suspects: [] },
    ...{ active: null, skip: null, workers: workers.map((worker) => workerView(aWorker(worker), START)) },
    ...fields,
  };
}

/** A job before it exists. */
function anOccurrence(fields: Partial<Facts>, at = after(3_600_000)): Facts {
  return facts({ id: `s@${at.toISOString()}`, occurrence: at, schedule: aSchedule(), ...fields }, {});
}

describe('gates', () => {
  const minute = after(60_000);
  const cases: [string, Facts, string | null, RegExp, Date | null][] = [
    ['nothing in the way', facts({ job: aJob() }, {}), null, /^Due since 2026.*nothing keeps it/, null],
    [
      'held',
      facts({ job: aJob({ status: 'PENDING', held: { reason: 'look', at: START } }) }, {}),
      'held',
      /^It is held since .*: look; release it\.$/,
      null,
    ],
    [
      'due later',
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
      /^It took its process with it 2 times, .* one at a time per process: the worker that could run it has other,/,
      null,
    ],
    [
      'a suspect behind others, beside a worker without a free slot',
      facts(
        {
          job: aJob({ abandoned: 1 }),
          suspects: ['a', 'b'].map((name) => ({ _id: `job-of-${name}`, lockedBy: name })),
        },
        ...[
          { _id: 'a', running: 1 },
          { _id: 'b', running: 1 },
          { _id: 'c', running: 5 },
        ],
      ),
      'suspect',
      /^Its process died 1 time before it began, .*: all 2 workers .*job-of-a/,
      null,
    ],
    [
      'a suspect that another worker can take',
      facts(
        { job: aJob({ crashes: 1 }), suspects: [{ _id: 'other', lockedBy: 'a' }] },
        ...[{ _id: 'a', running: 1 }, { _id: 'b' }],
      ),
      null,
      /nothing keeps it/,
      null,
    ],
    [
      'a job that is no suspect beside one',
      facts({ job: aJob(), suspects: [{ _id: 'other', lockedBy: 'worker' }] }, { running: 1 }),
      null,
      /nothing keeps it/,
      null,
    ],
    ['nobody', facts({ job: aJob() }), 'alive', /^No worker is alive/, null],
    [
      'no handler',
      facts({ job: aJob({ taskType: 'sendMial' }) }, { taskTypes: ['sendMail'] }),
      'handler',
      /^No live worker has a handler for 'sendMial' \(the nearest known: 'sendMail'\)\.$/,
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
      /^No live worker serves its queue 'mail' \(served are: a, b\)/,
      null,
    ],
    [
      'queue and handler apart',
      facts({ job: aJob({ queue: 'mail' }) }, { _id: 'a' }, { _id: 'b', queues: ['mail'], taskTypes: ['x'] }),
      'queue',
      /none does both/,
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
      /^It runs in worker worker since .*, attempt 1, progress 40: halfway\.$/,
      START,
    ],
    [
      'to be cancelled',
      facts({ job: aJob({ status: 'RUNNING', cancelRequested: { reason: null, at: START } }) }),
      'running',
      /asked to cancel it at/,
      START,
    ],
    ['buffered', facts({ job: aJob({ status: 'QUEUED' }) }), 'buffered', /in its buffer since/, START],
    [
      'lock expired',
      facts({ job: aJob({ status: 'RUNNING', lockedUntil: after(-1000) }) }, {}),
      'lockExpired',
      /expired at .*1 s ago.*next sweep/,
      null,
    ],
    [
      'lock expired, nobody there',
      facts({ job: aJob({ status: 'QUEUED', lockedUntil: after(-1000) }) }),
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
      'an occurrence to come',
      anOccurrence({}),
      'notMade',
      /^Not due until 2026-01-01T01:00:00\.000Z \(in 1 h\)/,
      after(3_600_000),
    ],
    [
      'an occurrence after the next',
      anOccurrence({}, after(7_200_000)),
      'notMade',
      /^Not due until 2026-01-01T02:00/,
      after(7_200_000),
    ],
    [
      'an instant between two occurrences',
      anOccurrence({}, after(5_400_000)),
      'noOccurrence',
      /'s' has no occurrence at 2026-01-01T01:30:00\.000Z; the next one after it is 2026-01-01T02:00/,
      after(7_200_000),
    ],
    [
      'an instant after the last occurrence',
      anOccurrence(
        {
          schedule: aSchedule({ rule: { cron: '0 * * * *', timezone: 'UTC', endsAt: after(5_400_000) } }),
        },
        after(7_200_000),
      ),
      'noOccurrence',
      /none follows/,
      null,
    ],
    ['an instant beyond all calendars', anOccurrence({}, new Date(8.64e15)), 'noOccurrence', /2757/, null],
    [
      'a rule that cannot be read',
      anOccurrence({ schedule: aSchedule({ rule: { cron: 'x', timezone: 'UTC' } }) }, after(7_200_000)),
      'noOccurrence',
      /The rule of its schedule 's' cannot be read: /,
      null,
    ],
    [
      'an unreadable schedule',
      anOccurrence({ schedule: null, scheduleFault: 'priority cannot be read' }),
      'unreadableSchedule',
      /its schedule 's' cannot be read: priority/,
      null,
    ],
    ['no occurrence', anOccurrence({}, after(-1)), 'notMade', /is no occurrence of 's'/, after(3_600_000)],
    [
      'an occurrence nobody decided on',
      anOccurrence({ schedule: aSchedule({ nextRunAt: after(-1000) }), workers: [] }, after(-1000)),
      'notMade',
      /no live worker is there/,
      null,
    ],
    [
      'a definition nobody has',
      anOccurrence(
        { schedule: aSchedule({ owner: 'code', taskType: 's', nextRunAt: after(-1000) }) },
        after(-1000),
      ),
      'notMade',
      /no live worker has the definition 's'/,
      null,
    ],
    [
      'a paused schedule',
      anOccurrence({
        schedule: aSchedule({ isActive: false, paused: { at: START, by: 'ada', reason: 'moving' } }),
      }),
      'schedulePaused',
      /^Its schedule 's' is paused since .* by ada: moving; resume it\.$/,
      null,
    ],
    [
      'a schedule that cannot be read',
      anOccurrence({ schedule: aSchedule({ disabledReason: 'bad cron' }) }),
      'schedulePaused',
      /is disabled: bad cron/,
      null,
    ],
    [
      'a run before it',
      anOccurrence(
        {
          schedule: aSchedule({ nextRunAt: after(-1000) }),
          active: {
            _id: 's@before',
            status: 'RUNNING',
            createdAt: START,
            startedAt: START,
            finishedAt: null,
          },
        },
        after(-1000),
      ),
      'runningElsewhere',
      /^s@before, the run before it, is RUNNING since .*must not overlap: it is skipped unless/,
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
      /\(overlap\): s@before was in the way, for 5 s already/,
      START,
    ],
  ];

  for (const [title, given, gate, sentence, at] of cases) {
    it(`B11 says one thing about: ${title}`, () => {
      const explanation = explain(given);
      assert.deepEqual([explanation.gate, explanation.at], [gate, at]);
      assert.match(explanation.sentence, sentence);
      assert.equal(explanation.status, given.job?.status ?? null);
    });
  }

  it('B11 an occurrence in line goes when the run before it ends', () => {
    const id = 's@in-line';
    const owed = [{ kind: 'run' as const, id, at: START, since: START }];
    const schedule = aSchedule({ overlap: 'queue', active: 's@before', owed });
    const active = {
      _id: 's@before',
      status: 'RUNNING' as const,
      createdAt: START,
      startedAt: START,
      finishedAt: null,
    };
    assert.match(explain(facts({ id, schedule, active }, {})).sentence, /it goes when that one ends/);
    assert.match(explain(facts({ id, schedule }, {})).sentence, /decided and has no job yet/);
  });

  it('B11 asks every gate in order, names the first, and shows the others that will be in the way', () => {
    const { gate, checked } = explain(facts({ job: aJob({ nextRunAt: after(60_000), taskType: 'x' }) }, {}));
    assert.equal(gate, 'due');
    assert.deepEqual(
      checked.filter(({ passed }) => !passed).map(({ gate: name }) => name),
      ['due', 'handler'],
    );
    assert.ok(checked.every(({ sentence }) => sentence.endsWith('.')));
    const over: Explanation = explain(facts({ job: aJob({ status: 'COMPLETED' }) }));
    assert.deepEqual(
      over.checked.map(({ gate: name }) => name),
      ['finished'],
    );
  });

  it('B11 one more gate is one more entry of the list', () => {
    const limit: Gate = {
      name: 'limit',
      passed: 'Nothing limits it.',
      explain: () => ({ sentence: 'Its lane is full.', at: null }),
    };
    assert.equal(explain(facts({ job: aJob() }, {}), [limit]).sentence, 'Its lane is full.');
  });
});

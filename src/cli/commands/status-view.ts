import { JOB_STATUSES } from '../../domain/job.js';
import type { QueueView, StatusView } from '../../operations/status.js';
import type { WorkerView } from '../../operations/workers.js';
import type { Count } from '../../store/list-jobs.js';
import type { View } from '../command.js';
import { flowed, styled, type Line, type Span } from '../styled.js';
import { table, type Column } from '../table.js';
import { instant, number, plural, span } from '../times.js';
import { statusSpan } from './jobs-view.js';

/** What waits for longer than this stands out. */
const LONG_WAIT = 60_000;

export function statusLines(status: StatusView, { width }: View): Line[] {
  const { at, stored, due, throughput, running, slots, queues, workers, totals } = status;
  const live = workers.filter(({ isLive }) => isLive).length;
  const busy = `${running} of ${slots} slots busy, ${plural(live, 'live worker')}`;
  const rate = `${number(throughput.perMinute)} attempts a minute (last ${span(throughput.window)})`;
  const outcomes = Object.entries(throughput.byOutcome).map(
    ([outcome, count]) => `${number(count)} ${outcome}`,
  );
  return [
    [styled('bold', 'Chronos'), `  ${instant(at)}`],
    `${plural(stored, 'job')} stored, ${countOf(due)} due; ${busy}`,
    [rate, styled('dim', outcomes.length === 0 ? '' : `: ${outcomes.join(', ')}`)],
    '',
    ...flowed(
      JOB_STATUSES.map((name) => [statusSpan(name), ` ${countOf(totals[name])}`]),
      '   ',
      width,
    ),
    '',
    ...queueTable(queues, width),
    ...(status.isComplete ? [] : [styled('yellow', 'There are more queues than there was time to look at.')]),
    '',
    ...workerTable(workers, width),
  ];
}

export function queueTable(queues: readonly QueueView[], width: number): Line[] {
  if (queues.length === 0) return ['No queues: nothing waits, and no worker is alive.'];
  const columns: Column<QueueView>[] = [
    { title: 'queue', cell: ({ queue }) => queue },
    { title: 'due', cell: ({ due }) => countOf(due), align: 'right' },
    { title: 'oldest', cell: oldest, align: 'right' },
    { title: 'scheduled', cell: ({ counts }) => countOf(counts.SCHEDULED), align: 'right' },
    { title: 'running', cell: ({ counts }) => countOf(counts.RUNNING), align: 'right' },
    { title: 'failed', cell: ({ counts }) => failed(counts.FAILED), align: 'right' },
    { title: 'a minute', cell: ({ perMinute }) => number(perMinute), align: 'right' },
    { title: 'empty in', cell: ({ drainIn }) => (drainIn === 0 ? 'now' : span(drainIn)), align: 'right' },
    { title: 'workers', cell: workersOf, align: 'right' },
  ];
  return table(columns, queues, width);
}

export function workerTable(workers: readonly WorkerView[], width: number): Line[] {
  if (workers.length === 0) return [styled('yellow', 'No worker was seen in the last day.')];
  const columns: Column<WorkerView>[] = [
    { title: 'worker', cell: ({ id }) => id },
    {
      title: 'state',
      cell: ({ state, isLive }) => (isLive ? styled('green', state) : styled('red', isGone(state))),
    },
    { title: 'busy', cell: ({ running, concurrency }) => `${running}/${concurrency}`, align: 'right' },
    { title: 'seen', cell: ({ silentFor }) => `${span(silentFor)} ago`, align: 'right' },
    { title: 'up', cell: (worker) => span(upFor(worker)), align: 'right' },
    { title: 'version', cell: ({ version }) => version },
    { title: 'queues', cell: ({ queues }) => queues.join(', ') },
    { title: 'types', cell: ({ taskTypes }) => String(taskTypes.length), align: 'right' },
  ];
  return table(columns, workers, width);
}

function countOf({ count, atLeast }: Count): string {
  return `${number(count)}${atLeast ? '+' : ''}`;
}

function oldest({ oldestWaiting }: QueueView): Span {
  return (oldestWaiting ?? 0) > LONG_WAIT ? styled('yellow', span(oldestWaiting)) : span(oldestWaiting);
}

function failed(count: Count): Span {
  return count.count > 0 ? styled('red', countOf(count)) : countOf(count);
}

function workersOf({ workers, due }: QueueView): Span {
  return workers === 0 && due.count > 0 ? styled('red', '0') : String(workers);
}

/** It says it runs, and has not shown itself. */
function isGone(state: string): string {
  return state === 'Running' ? 'Silent' : state;
}

/** As long as it is known to be: one that is gone, until it was seen last. */
function upFor({ startedAt, heartbeatAt, silentFor, isLive }: WorkerView): number {
  return Math.max(0, heartbeatAt.getTime() - startedAt.getTime()) + (isLive ? silentFor : 0);
}

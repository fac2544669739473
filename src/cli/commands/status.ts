import { STATE_NAMES } from '../../domain/job/state.js';
import type { Finding } from '../../operations/doctor/doctor.js';
import type { WorkerView } from '../../operations/lists.js';
import type { QueueView, StatusView } from '../../operations/status.js';
import { EXIT } from '../../process/exit.js';
import type { Count } from '../../store/jobs/counts.js';
import type { WorkerChange } from '../../store/system.js';
import { option } from '../arguments.js';
import { type CommandSpec, message, type View } from '../command.js';
import { instant, number, plural, formatDuration } from '../terminal/format.js';
import { wrap, type Line, type Span, type Style, styled } from '../terminal/styled.js';
import { type Column, table } from '../terminal/table.js';
import { stateSpan } from './job-views.js';

/** Queues whose oldest job has been waiting for longer than this are highlighted. */
const LONG_WAIT_MS = 60_000;

const MARKS: Record<Finding['level'], readonly [mark: string, style: Style]> = {
  ok: ['✔', 'green'],
  warning: ['!', 'yellow'],
  error: ['✖', 'red'],
};

export const statusCommands: readonly CommandSpec[] = [
  {
    name: 'install',
    summary: 'Create collections, indexes and validators; a worker does the same when it starts',
    options: [option('--shard', 'on a sharded cluster: distribute jobs and their attempts over the shards')],
    examples: ['install', 'install --shard'],
    async run(context) {
      const shard = context.args.flag('shard');
      await context.install({ shard });
      const sentence = 'Collections, indexes and validators are installed.';
      return shard
        ? message({ installed: true, sharded: true }, `${sentence} Jobs and attempts are sharded.`)
        : message({ installed: true }, sentence);
    },
  },
  {
    name: 'status',
    summary: 'Show queues, counts by state, the oldest waiting job, throughput and workers',
    examples: ['status', 'status --json'],
    async run(context) {
      const status = await (await context.operations()).status();
      return { data: status, lines: (view) => statusLines(status, view) };
    },
  },
  {
    name: 'doctor',
    summary: 'Check the installation for problems; exit 1 if there is one',
    examples: ['doctor', 'doctor --json'],
    async run(context) {
      const findings = await (await context.operations()).doctor();
      const isWell = findings.every(({ level }) => level !== 'error');
      return {
        data: { isWell, findings },
        lines: () => findings.flatMap(findingLines),
        exitCode: isWell ? EXIT.success : EXIT.failure,
      };
    },
  },
  {
    name: 'queues list',
    summary: 'List queues with their backlog',
    examples: ['queues list'],
    async run(context) {
      const found = await (await context.operations()).listQueues();
      return { data: found, lines: ({ width }) => queueTable(found.items, width) };
    },
  },
  {
    name: 'workers list',
    summary: 'List worker processes of the last day, live ones first',
    examples: ['workers list'],
    async run(context) {
      const found = await (await context.operations()).listWorkers();
      return { data: found, lines: ({ width }) => workerTable(found.items, width) };
    },
  },
  drainCommand('drain', 'Ask a worker to claim no more jobs and finish those that it runs; it stays up'),
  drainCommand('undrain', 'Ask a worker to claim jobs again'),
];

function drainCommand(name: 'drain' | 'undrain', summary: string): CommandSpec {
  return {
    name: `workers ${name}`,
    summary,
    arguments: [{ name: '<worker>', help: 'id of the worker, from `workers list`' }],
    examples: [`workers ${name} mail-1`],
    async run(context) {
      const id = context.args.first;
      const { result } = await context.change({
        action: `${name}Worker`,
        before: { target: id },
        change: ({ operations }) => operations[`${name}Worker`](id),
        after: (made) => (made.result === 'requested' ? {} : 'refused'),
      });
      return message(
        { action: name, id, result },
        DRAIN_RESULTS[result](id, name),
        result === 'requested' ? EXIT.success : EXIT.failure,
      );
    },
  };
}

const DRAIN_RESULTS: Record<WorkerChange['result'], (id: string, name: 'drain' | 'undrain') => string> = {
  requested: (id, name) =>
    `Asked ${id} to ${name}; it follows with its next heartbeat, see \`chronos workers list\`.`,
  notLive: (id) => `No change made: ${id} has stopped, or sends no heartbeats.`,
  notFound: (id) => `There was no worker '${id}' within the last day.`,
};

function findingLines({ check, level, finding, advice }: Finding): Line[] {
  const [mark, style] = MARKS[level];
  return [
    [styled(style, mark), styled('dim', ` ${check}: `), finding],
    ...(advice === null ? [] : [[styled(style, '  → '), advice]]),
  ];
}

export function statusLines(status: StatusView, { width }: View): Line[] {
  const { at, stored, throughput, running, slots, queues, workers, totals } = status;
  const live = workers.filter(({ isLive }) => isLive).length;
  const busy = `${running} of ${slots} slots busy, ${plural(live, 'live worker')}`;
  const rate = `${number(throughput.perMinute)} attempts per minute (last ${formatDuration(throughput.window)})`;
  const outcomes = Object.entries(throughput.byOutcome).map(
    ([outcome, count]) => `${number(count)} ${outcome === 'retry' ? 'retried' : outcome}`,
  );
  return [
    [styled('bold', 'Chronos'), `  ${instant(at)}`],
    `${plural(stored, 'job')} stored, ${formatCount(totals.waiting)} waiting; ${busy}`,
    [rate, styled('dim', outcomes.length === 0 ? '' : `: ${outcomes.join(', ')}`)],
    '',
    ...wrap(
      STATE_NAMES.map((name) => [stateSpan(name), ` ${formatCount(totals[name])}`]),
      '   ',
      width,
    ),
    '',
    ...queueTable(queues, width),
    ...(status.isComplete ? [] : [styled('yellow', 'There are more queues than could be read in time.')]),
    '',
    ...workerTable(workers, width),
  ];
}

function queueTable(queues: readonly QueueView[], width: number): Line[] {
  if (queues.length === 0) return ['No queues: there are no waiting jobs and no live workers.'];
  const columns: Column<QueueView>[] = [
    { title: 'queue', cell: ({ queue }) => queue },
    { title: 'waiting', cell: ({ counts }) => formatCount(counts.waiting), align: 'right' },
    { title: 'oldest', cell: oldestSpan, align: 'right' },
    { title: 'delayed', cell: ({ counts }) => formatCount(counts.delayed), align: 'right' },
    { title: 'retrying', cell: ({ counts }) => formatCount(counts.retrying), align: 'right' },
    { title: 'running', cell: ({ counts }) => formatCount(counts.running), align: 'right' },
    { title: 'failed', cell: ({ counts }) => failedSpan(counts.failed), align: 'right' },
    { title: 'per minute', cell: ({ perMinute }) => number(perMinute), align: 'right' },
    {
      title: 'drains in',
      cell: ({ drainIn }) => (drainIn === 0 ? 'now' : formatDuration(drainIn)),
      align: 'right',
    },
    { title: 'workers', cell: workersSpan, align: 'right' },
  ];
  return table(columns, queues, width);
}

function workerTable(workers: readonly WorkerView[], width: number): Line[] {
  if (workers.length === 0) return [styled('yellow', 'No worker was seen in the last day.')];
  const columns: Column<WorkerView>[] = [
    { title: 'worker', cell: ({ id }) => id },
    {
      title: 'state',
      cell: workerState,
    },
    { title: 'busy', cell: ({ running, concurrency }) => `${running}/${concurrency}`, align: 'right' },
    { title: 'seen', cell: ({ silentFor }) => `${formatDuration(silentFor)} ago`, align: 'right' },
    { title: 'up', cell: (worker) => formatDuration(uptime(worker)), align: 'right' },
    { title: 'version', cell: ({ version }) => version },
    { title: 'queues', cell: ({ queues }) => queues.join(', ') },
    { title: 'types', cell: ({ taskTypes }) => String(taskTypes.length), align: 'right' },
  ];
  return table(columns, workers, width);
}

function workerState({ state, isLive, isDraining, running }: WorkerView): Span {
  if (!isLive) return styled('red', state === 'Running' ? 'Silent' : state);
  if (isDraining) return styled('yellow', running === 0 ? 'Drained' : 'Draining');
  return styled('green', state);
}

function formatCount({ count, atLeast }: Count): string {
  return `${number(count)}${atLeast ? '+' : ''}`;
}

function oldestSpan({ oldestWaiting }: QueueView): Span {
  return (oldestWaiting ?? 0) > LONG_WAIT_MS
    ? styled('yellow', formatDuration(oldestWaiting))
    : formatDuration(oldestWaiting);
}

function failedSpan(count: Count): Span {
  return count.count > 0 ? styled('red', formatCount(count)) : formatCount(count);
}

function workersSpan({ workers, counts }: QueueView): Span {
  return workers === 0 && counts.waiting.count > 0 ? styled('red', '0') : String(workers);
}

/** Until now for a live worker, else until its last heartbeat. */
function uptime({ startedAt, heartbeatAt, silentFor, isLive }: WorkerView): number {
  return Math.max(0, heartbeatAt.getTime() - startedAt.getTime()) + (isLive ? silentFor : 0);
}

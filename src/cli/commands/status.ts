import { EXIT } from '../../process/exit.js';
import { said, type CommandSpec } from '../command.js';
import { styled, type Line, type Style } from '../styled.js';
import type { Finding } from '../../operations/doctor.js';
import { queueTable, statusLines, workerTable } from './status-view.js';

const MARKS: Record<Finding['level'], readonly [mark: string, style: Style]> = {
  ok: ['✔', 'green'],
  warning: ['!', 'yellow'],
  error: ['✖', 'red'],
};

export const statusCommands: readonly CommandSpec[] = [
  {
    name: 'install',
    summary: 'Create collections, indexes and validators; a worker that starts does it too',
    examples: ['install'],
    async run(context) {
      await context.install();
      return said({ installed: true }, 'Collections, indexes and validators are there.');
    },
  },
  {
    name: 'status',
    summary: 'Show queues, counts by status, the oldest waiting, throughput and workers',
    examples: ['status', 'status --json'],
    async run(context) {
      const status = await (await context.scheduler()).operations.status();
      return { data: status, lines: (view) => statusLines(status, view) };
    },
  },
  {
    name: 'doctor',
    summary: 'Look for what is wrong with the installation; exit 1 when something is',
    examples: ['doctor', 'doctor --json'],
    async run(context) {
      const findings = await (await context.scheduler()).operations.doctor();
      const isWell = findings.every(({ level }) => level !== 'error');
      return {
        data: { isWell, findings },
        lines: () => findings.flatMap(findingLines),
        exitCode: isWell ? EXIT.fine : EXIT.wrong,
      };
    },
  },
  {
    name: 'queues list',
    summary: 'List queues with what waits in them',
    examples: ['queues list'],
    async run(context) {
      const queues = await (await context.scheduler()).operations.listQueues();
      return { data: { queues }, lines: ({ width }) => queueTable(queues, width) };
    },
  },
  {
    name: 'workers list',
    summary: 'List worker processes of the last day, those that live first',
    examples: ['workers list'],
    async run(context) {
      const workers = await (await context.scheduler()).operations.listWorkers();
      return { data: { workers }, lines: ({ width }) => workerTable(workers, width) };
    },
  },
];

function findingLines({ check, level, finding, advice }: Finding): Line[] {
  const [mark, style] = MARKS[level];
  return [
    [styled(style, mark), styled('dim', ` ${check}: `), finding],
    ...(advice === null ? [] : [[styled(style, '  → '), advice]]),
  ];
}

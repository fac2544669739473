import { DEFAULTS } from '../../config/options.js';
import { jsonText } from '../../domain/text.js';
import type { DefinitionView, ScheduleDifference } from '../../operations/definitions.js';
import { EXIT } from '../../process/exit.js';
import { option } from '../arguments.js';
import type { CommandSpec, View } from '../command.js';
import { instant, NONE, plural, formatRelative } from '../terminal/format.js';
import { type Line, type Span, type Style, styled } from '../terminal/styled.js';
import { type Column, table } from '../terminal/table.js';
import { ruleText } from './schedules.js';

export const HANDLERS = option(
  '--handlers <module>',
  'module with the handlers and definitions (default: HANDLERS)',
);

const STATE_STYLES: Record<ScheduleDifference['state'], Style> = {
  same: 'green',
  new: 'blue',
  changed: 'yellow',
  orphaned: 'red',
  taken: 'red',
};

export const definitionCommands: readonly CommandSpec[] = [
  {
    name: 'show',
    summary: 'Show the definitions in code, their rules and next runs',
    options: [HANDLERS],
    examples: ['show --handlers ./my-handlers.js'],
    async run(context) {
      const found = await (await context.withDefinitions()).operations.listDefinitions();
      return { data: found, lines: (view) => definitionTable(found.items, view) };
    },
  },
  {
    name: 'usage',
    summary: 'Show the settings, handlers and definitions that a worker would have here',
    options: [HANDLERS],
    examples: ['usage --handlers ./my-handlers.js'],
    async run(context) {
      // Show the timeout of a worker, not the shorter one of this command.
      const scheduler = await context.withDefinitions(DEFAULTS.connectTimeout);
      const configuration = scheduler.operations.configuration();
      const definitions = scheduler.getExecutionOrder();
      return {
        data: { ...configuration, definitions },
        lines: (): Line[] => [
          [styled('bold', 'Chronos'), ` ${configuration.version}`],
          [styled('dim', 'handlers     '), configuration.taskTypes.join(', ') || NONE],
          [styled('dim', 'definitions  '), definitions.join(', ') || NONE],
          ...Object.entries(configuration.options).map(([name, value]): Line => [
            styled('dim', `${name.padEnd(22)} `),
            typeof value === 'string' ? value : jsonText(value),
          ]),
          '',
          'chronos work, run and daemon use these; chronos help lists all commands.',
        ],
      };
    },
  },
  {
    name: 'collect',
    summary: 'Create the jobs of all due schedules, in code and stored, without running them',
    options: [HANDLERS],
    examples: ['collect --handlers ./my-handlers.js'],
    async run(context) {
      await context.withDefinitions();
      const collected = await context.change({
        action: 'collect',
        before: {},
        change: ({ operations }) => operations.collect(),
        after: ({ created }) => ({ counts: { created } }),
      });
      return {
        data: collected,
        lines: () => [
          `${plural(collected.created, 'job')} created.`,
          ...collected.jobs.map(({ id }): Line => `  ${id}`),
        ],
      };
    },
  },
  {
    name: 'schedules diff',
    summary: 'Compare the definitions in code with the stored schedules; exit 1 if they differ',
    options: [HANDLERS],
    examples: ['schedules diff --handlers ./my-handlers.js'],
    async run(context) {
      const differences = await (await context.withDefinitions()).operations.diffSchedules();
      const isSame = differences.every(({ state }) => state === 'same');
      return {
        data: { isSame, differences },
        lines: () =>
          differences.length === 0
            ? ['There are no definitions, in code or stored.']
            : differences.flatMap(diffLines),
        exitCode: isSame ? EXIT.success : EXIT.failure,
      };
    },
  },
];

function definitionTable(definitions: readonly DefinitionView[], { width, now }: View): Line[] {
  if (definitions.length === 0)
    return ['No definitions: use --handlers or HANDLERS to name a module that has some.'];
  const columns: Column<DefinitionView>[] = [
    { title: 'name', cell: ({ name }) => name, keep: true },
    {
      title: 'runs',
      cell: ({ runs }) => (runs.kind === runs.label ? runs.kind : `${runs.kind} ${runs.label}`),
    },
    { title: 'here', cell: servedSpan },
    { title: 'stored', cell: storedSpan },
    { title: 'next', cell: ({ nextRuns }) => formatRelative(nextRuns[0] ?? null, now), align: 'right' },
    { title: 'rule', cell: ({ rule }) => ruleText(rule) },
    { title: 'after', cell: ({ dependsOn }) => dependsOn.join(', ') },
    { title: 'times', cell: ({ nextRuns }) => nextRuns.map(instant).join(', ') },
  ];
  return table(columns, definitions, width);
}

function servedSpan({ isServed, hasHandler, enabled }: DefinitionView): Span {
  if (!enabled) return styled('dim', 'disabled');
  if (isServed) return styled('green', 'yes');
  return styled('yellow', hasHandler ? 'elsewhere' : 'no handler');
}

function storedSpan({ stored }: DefinitionView): Span {
  if (stored === null) return styled('dim', 'not yet');
  if (stored.paused !== null) return styled('yellow', 'paused');
  return stored.isActive ? styled('green', 'active') : styled('red', 'disabled');
}

function diffLines({ name, state, changes }: ScheduleDifference): Line[] {
  return [
    [styled(STATE_STYLES[state], state.padEnd(9)), name],
    ...changes.flatMap(({ field, code, stored }): Line[] => [
      [styled('red', `          - ${field}: ${jsonText(stored)}`)],
      [styled('green', `          + ${field}: ${jsonText(code)}`)],
    ]),
  ];
}

import { DEFAULTS } from '../../config/options.js';
import type { DefinitionView, ScheduleDifference } from '../../operations/definitions.js';
import { jsonText } from '../../domain/text.js';
import { EXIT } from '../../process/exit.js';
import type { CommandSpec, OptionSpec, View } from '../command.js';
import { styled, type Line, type Span, type Style } from '../styled.js';
import { table, type Column } from '../table.js';
import { instant, NONE, plural, relative } from '../times.js';
import { ruleText } from './schedules-view.js';

export const HANDLERS: OptionSpec = {
  flags: '--handlers <module>',
  help: 'module with the handlers and definitions (default: HANDLERS)',
};

const STYLE_OF: Record<ScheduleDifference['state'], Style> = {
  same: 'green',
  new: 'blue',
  changed: 'yellow',
  orphaned: 'red',
  taken: 'red',
};

export const definitionCommands: readonly CommandSpec[] = [
  {
    name: 'show',
    summary: 'Show the definitions that are loaded, their rules and next times',
    options: [HANDLERS],
    examples: ['show --handlers ./my-handlers.js'],
    async run(context) {
      const definitions = await (await context.withDefinitions()).operations.listDefinitions();
      return { data: { definitions }, lines: (view) => definitionTable(definitions, view) };
    },
  },
  {
    name: 'usage',
    summary: 'Show what a worker would work with here: its settings, handlers and definitions',
    options: [HANDLERS],
    examples: ['usage --handlers ./my-handlers.js'],
    async run(context) {
      // A worker is more patient than a person with a command.
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
          'chronos work, run and daemon work with these; chronos help lists all commands.',
        ],
      };
    },
  },
  {
    name: 'collect',
    summary: 'Make the jobs that schedules owe, in code and stored, and run nothing',
    options: [HANDLERS],
    examples: ['collect --handlers ./my-handlers.js'],
    async run(context) {
      await context.withDefinitions();
      const collected = await context.change({
        action: 'collect',
        about: {},
        make: ({ operations }) => operations.collect(),
        came: ({ created }) => ({ counts: { created } }),
      });
      return {
        data: collected,
        lines: () => [
          `${plural(collected.created, 'job')} made.`,
          ...collected.jobs.map(({ id }): Line => `  ${id}`),
        ],
      };
    },
  },
  {
    name: 'schedules diff',
    summary: 'Compare the definitions in code with what is stored; exit 1 when they differ',
    options: [HANDLERS],
    examples: ['schedules diff --handlers ./my-handlers.js'],
    async run(context) {
      const differences = await (await context.withDefinitions()).operations.diffSchedules();
      const isSame = differences.every(({ state }) => state === 'same');
      return {
        data: { isSame, differences },
        lines: () =>
          differences.length === 0 ? ['No definitions, in code or stored.'] : differences.flatMap(diffLines),
        exitCode: isSame ? EXIT.fine : EXIT.wrong,
      };
    },
  },
];

function definitionTable(definitions: readonly DefinitionView[], { width, now }: View): Line[] {
  if (definitions.length === 0)
    return ['No definitions: name a module that has some with --handlers or HANDLERS.'];
  const columns: Column<DefinitionView>[] = [
    { title: 'name', cell: ({ name }) => name, keep: true },
    {
      title: 'runs',
      cell: ({ runs }) => (runs.kind === runs.label ? runs.kind : `${runs.kind} ${runs.label}`),
    },
    { title: 'here', cell: servedOf },
    { title: 'stored', cell: storedOf },
    { title: 'next', cell: ({ nextRuns }) => relative(nextRuns[0] ?? null, now), align: 'right' },
    { title: 'rule', cell: ({ rule }) => ruleText(rule) },
    { title: 'after', cell: ({ dependsOn }) => dependsOn.join(', ') },
    { title: 'times', cell: ({ nextRuns }) => nextRuns.map(instant).join(', ') },
  ];
  return table(columns, definitions, width);
}

function servedOf({ isServed, hasHandler, enabled }: DefinitionView): Span {
  if (!enabled) return styled('dim', 'disabled');
  if (isServed) return styled('green', 'yes');
  return styled('yellow', hasHandler ? 'elsewhere' : 'no handler');
}

function storedOf({ stored }: DefinitionView): Span {
  if (stored === null) return styled('dim', 'not yet');
  if (stored.paused !== null) return styled('yellow', 'paused');
  return stored.isActive ? styled('green', 'active') : styled('red', 'disabled');
}

function diffLines({ name, state, changes }: ScheduleDifference): Line[] {
  return [
    [styled(STYLE_OF[state], state.padEnd(9)), name],
    ...changes.flatMap(({ field, code, stored }): Line[] => [
      [styled('red', `          - ${field}: ${jsonText(stored)}`)],
      [styled('green', `          + ${field}: ${jsonText(code)}`)],
    ]),
  ];
}

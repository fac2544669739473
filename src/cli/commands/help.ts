import { EXIT_CODES } from '../../process/exit.js';
import type { CommandSpec } from '../command.js';
import { table } from '../table.js';

/** Help that belongs to no command. */
export const exitCodes: CommandSpec = {
  name: 'help exit-codes',
  summary: 'Show what each exit code means',
  examples: ['help exit-codes'],
  run: () =>
    Promise.resolve({
      data: { exitCodes: EXIT_CODES },
      lines: ({ width }) =>
        table<(typeof EXIT_CODES)[number]>(
          [
            { title: 'code', cell: ({ code }) => String(code), align: 'right', keep: true },
            { title: 'meaning', cell: ({ meaning }) => meaning },
          ],
          EXIT_CODES,
          width,
        ),
    }),
};

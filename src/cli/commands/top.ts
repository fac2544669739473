import { hideCredentials, toError } from '../../domain/errors.js';
import type { StatusView } from '../../operations/status.js';
import { EXIT } from '../../process/exit.js';
import type { CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { interval } from '../readers.js';
import { styled, type Line } from '../styled.js';
import { statusLines } from './status-view.js';

const CTRL_C = '\u0003';

export const top: CommandSpec = {
  name: 'top',
  summary: 'Show the same as status, live, until q or Ctrl-C',
  options: [
    {
      flags: '--interval <duration>',
      help: 'how often to look (default: 2s, at least 250ms)',
      read: interval,
    },
  ],
  examples: ['top', 'top --interval 500ms'],
  async run(context) {
    const { operations } = await context.scheduler();
    const { stdin } = context.surroundings;
    if (context.isJson || !context.out.isTerminal || !stdin.isTTY) {
      const status = await operations.status();
      return { data: status, lines: (view) => statusLines(status, view) };
    }
    // Before the screen is taken over: who cannot connect gets an error, and not an empty screen.
    const first = await operations.status();
    await live(context, first, () => operations.status());
    return EXIT.fine;
  },
};

async function live(context: Context, first: StatusView, look: () => Promise<StatusView>): Promise<void> {
  const { out, clock, surroundings, given, signal } = context;
  const { stdin, stdout } = surroundings;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const onKey = (key: Buffer): void => {
    if (key.toString().toLowerCase() === 'q' || key.toString() === CTRL_C) end();
  };
  let status = first;
  let trouble: string | null = null;
  const draw = (): void => out.screen(topLines(status, trouble, out.width, clock.now()));

  signal.addEventListener('abort', end);
  stdin.setRawMode(true).on('data', onKey).resume();
  stdout.on('resize', draw);
  out.fullScreen(true);
  try {
    for (draw(); !ended.signal.aborted; draw()) {
      await clock.sleep(given.number('interval') ?? 2000, ended.signal);
      if (ended.signal.aborted) break;
      try {
        status = await look();
        trouble = null;
      } catch (thrown) {
        trouble = hideCredentials(toError(thrown).message);
      }
    }
  } finally {
    out.fullScreen(false);
    stdout.off('resize', draw);
    stdin.off('data', onKey).setRawMode(false).pause();
  }
}

export function topLines(status: StatusView, trouble: string | null, width: number, now: Date): Line[] {
  return [
    ...statusLines(status, { width, now }),
    '',
    trouble === null ? styled('dim', 'q to quit') : styled('red', `the last look failed: ${trouble}`),
  ];
}

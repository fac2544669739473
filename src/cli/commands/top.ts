import { redactCredentials, toError } from '../../domain/errors.js';
import type { StatusView } from '../../operations/status.js';
import { EXIT } from '../../process/exit.js';
import { interval, option } from '../arguments.js';
import type { CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { type Line, styled } from '../terminal/styled.js';
import { statusLines } from './status.js';

const CTRL_C = '\u0003';

export const top: CommandSpec = {
  name: 'top',
  summary: 'Show the status live, until q or Ctrl-C',
  options: [option('--interval <duration>', 'how often to refresh (default: 2s, at least 250ms)', interval)],
  examples: ['top', 'top --interval 500ms'],
  async run(context) {
    const operations = await context.operations();
    // Read before switching to full screen, so that a connection error is printed as usual.
    const status = await operations.status();
    if (context.isJson || !context.out.isTerminal || !context.host.stdin.isTTY)
      return { data: status, lines: (view) => statusLines(status, view) };
    await showLive(context, status, () => operations.status());
    return EXIT.success;
  },
};

async function showLive(context: Context, first: StatusView, read: () => Promise<StatusView>): Promise<void> {
  const { out, clock, host, args, signal } = context;
  const { stdin, stdout } = host;
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const onKey = (key: Buffer): void => {
    if (key.toString().toLowerCase() === 'q' || key.toString() === CTRL_C) end();
  };
  let status = first;
  let error: string | null = null;
  const draw = (): void => out.screen(topLines(status, error, out.width, clock.now()));

  signal.addEventListener('abort', end);
  stdin.setRawMode(true).on('data', onKey).resume();
  stdout.on('resize', draw);
  out.fullScreen(true);
  try {
    for (draw(); !ended.signal.aborted; draw()) {
      await clock.sleep(args.number('interval') ?? 2000, ended.signal);
      if (ended.signal.aborted) break;
      try {
        status = await read();
        error = null;
      } catch (thrown) {
        error = redactCredentials(toError(thrown).message);
      }
    }
  } finally {
    out.fullScreen(false);
    stdout.off('resize', draw);
    stdin.off('data', onKey).setRawMode(false).pause();
  }
}

function topLines(status: StatusView, error: string | null, width: number, now: Date): Line[] {
  return [
    ...statusLines(status, { width, now }),
    '',
    error === null ? styled('dim', 'q to quit') : styled('red', `the last refresh failed: ${error}`),
  ];
}

import { ChronosError } from '../../domain/errors.js';
import { parseInstant } from '../../domain/instant.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import type { BackfillAnswer } from '../../schedules/stored-schedules.js';
import { said, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { plural } from '../times.js';
import { SCHEDULE_ID } from './schedules.js';

/** A backfill goes piece by piece, so that somebody sees it go on, and the limit of one piece is not that of all. */
const PIECES = 20;

export const backfillCommand: CommandSpec = {
  name: 'schedules backfill',
  summary: 'Make the jobs of past occurrences that have none, both ends included',
  arguments: [SCHEDULE_ID],
  options: [
    { flags: '--from <time>', help: 'of the first occurrence' },
    { flags: '--to <time>', help: 'of the last one (default: now)' },
  ],
  examples: ["schedules backfill digest --from '2026-11-01' --to '2026-11-08'"],
  run: backfill,
};

async function backfill(context: Context): Promise<Answer> {
  const { given, clock, signal } = context;
  const zone = context.settings().options.timezone ?? 'UTC';
  const first = parseInstant(given.text('from'), zone, '--from').getTime();
  const to = given.text('to');
  const last = to === undefined ? clock.now().getTime() : parseInstant(to, zone, '--to').getTime();
  if (first > last) throw new ChronosError('INVALID_ARGUMENT', '--from must not be after --to, or now');
  const total = await context.change({
    action: 'backfillSchedule',
    about: {
      target: given.word,
      filter: { from: new Date(first).toISOString(), to: new Date(last).toISOString() },
    },
    make: (scheduler) => inPieces(context, scheduler, first, last),
    came: ({ occurrences, existing }) => ({ counts: { occurrences, existing } }),
  });
  const sentence = `${plural(total.occurrences, 'occurrence')}, ${total.existing} of them had a job already${signal.aborted ? '; interrupted, do it again for the rest' : ''}.`;
  return said({ ...total, isAborted: signal.aborted }, sentence, signal.aborted ? EXIT.wrong : EXIT.fine);
}

async function inPieces(
  context: Context,
  scheduler: Scheduler,
  first: number,
  last: number,
): Promise<BackfillAnswer> {
  const { given, signal } = context;
  const total = { occurrences: 0, existing: 0 };
  const bar = context.progress('backfill');
  const length = Math.max(1, Math.ceil((last - first + 1) / PIECES));
  try {
    for (let from = first, piece = 1; from <= last && !signal.aborted; from += length, piece++) {
      const until = Math.min(last, from + length - 1);
      const made = await scheduler.backfill(given.word, new Date(from), new Date(until));
      total.occurrences += made.occurrences;
      total.existing += made.existing;
      bar.show(piece, PIECES);
    }
  } finally {
    bar.end();
  }
  return total;
}

import { ChronosError } from '../../domain/errors.js';
import { parseInstant } from '../../domain/instant.js';
import type { BackfillPreview } from '../../operations/preview-backfill.js';
import { EXIT } from '../../process/exit.js';
import type { Scheduler } from '../../scheduler.js';
import type { BackfillAnswer } from '../../schedules/runs-on-demand.js';
import { said, type Answer, type CommandSpec } from '../command.js';
import type { Context } from '../context.js';
import { instant, number, plural } from '../times.js';
import { YES } from './job-filter.js';
import { SCHEDULE_ID } from './schedules.js';

export const backfillCommand: CommandSpec = {
  name: 'schedules backfill',
  summary: 'Make the jobs of past occurrences that have none, both ends included',
  arguments: [SCHEDULE_ID],
  options: [
    { flags: '--from <time>', help: 'of the first occurrence' },
    { flags: '--to <time>', help: 'of the last one (default: now)' },
    YES,
  ],
  examples: ["schedules backfill digest --from '2026-11-01' --to '2026-11-08' --yes"],
  run: backfill,
};

async function backfill(context: Context): Promise<Answer> {
  const { given, clock } = context;
  const zone = context.settings().options.timezone ?? 'UTC';
  const from = parseInstant(given.text('from'), zone, '--from');
  const last = given.text('to');
  const to = last === undefined ? clock.now() : parseInstant(last, zone, '--to');
  if (from > to) throw new ChronosError('INVALID_ARGUMENT', '--from must not be after --to, or now');
  const preview = await (await context.scheduler()).operations.previewBackfill(given.word, from, to);
  const { occurrences, existing } = preview;
  const missing = occurrences - existing;
  if (missing === 0)
    return said(
      { occurrences, existing, isAborted: false },
      `Nothing to make: ${plural(occurrences, 'occurrence')}, and each has a job.`,
    );
  const question = `This will make ${plural(missing, 'job')}, of occurrences from ${instant(from)} to ${instant(to)}; ${number(existing)} more have one already.`;
  if (!(await context.confirm(question)))
    return said({ occurrences: 0, existing: 0, isAborted: true }, 'Nothing was made.', EXIT.wrong);
  const made = await context.change({
    action: 'backfillSchedule',
    about: { target: given.word, filter: { from: from.toISOString(), to: to.toISOString() } },
    make: (scheduler) => inPieces(context, scheduler, preview),
    came: (answer) => ({ counts: { ...answer } }),
  });
  const { aborted: isAborted } = context.signal;
  const sentence = `${plural(made.occurrences, 'occurrence')}, ${number(made.existing)} of them had a job already${isAborted ? '; interrupted, do it again for the rest' : ''}.`;
  return said({ ...made, isAborted }, sentence, isAborted ? EXIT.wrong : EXIT.fine);
}

/** Piece by piece, so that somebody sees it go on. */
async function inPieces(
  context: Context,
  scheduler: Scheduler,
  { pieces, occurrences }: BackfillPreview,
): Promise<BackfillAnswer> {
  const { given, signal } = context;
  const total = { occurrences: 0, existing: 0 };
  const bar = context.progress('backfill');
  try {
    for (const { from, to } of pieces) {
      if (signal.aborted) break;
      const made = await scheduler.backfill(given.word, from, to);
      total.occurrences += made.occurrences;
      total.existing += made.existing;
      bar.show(total.occurrences, occurrences);
    }
  } finally {
    bar.end();
  }
  return total;
}

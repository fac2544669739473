import { EXIT } from '../../process/exit.js';
import { said, type CommandSpec } from '../command.js';
import { duration } from '../readers.js';
import { counted, plural, span } from '../times.js';
import { YES } from './job-filter.js';

export const prune: CommandSpec = {
  name: 'prune',
  summary: 'Remove finished jobs past their retention, or everything stale that is older than an age',
  options: [
    {
      flags: '--older-than <duration>',
      help: 'finished jobs, jobs nobody has a handler for and jobs with an expired lock, all older than this',
      read: duration,
    },
    { flags: '--dry-run', help: 'only count' },
    { flags: '--handlers <module>', help: 'module whose task types are known, besides those of workers' },
    YES,
  ],
  examples: ['prune --yes', 'prune --older-than 30d --dry-run'],
  async run(context) {
    const { given, clock } = context;
    const scheduler = await context.withDefinitions();
    const age = given.number('olderThan');
    const counts = await scheduler.operations.countPrunable(age);
    const parts = `${counted(counts.finished, 'finished job')}, ${counted(counts.orphans, 'orphan')} and ${counted(counts.expired, 'job')} with an expired lock`;
    const which = age === undefined ? 'past their retention' : `older than ${span(age)}`;
    if (given.flag('dryRun')) return said({ removable: counts }, `Would remove ${parts}, ${which}.`);
    const total = counts.finished.count + counts.orphans.count + counts.expired.count;
    const nothing = { finished: 0, orphans: 0, expired: 0 };
    if (total === 0) return said({ removed: nothing }, `Nothing to remove ${which}.`);
    if (!(await context.confirm(`This will remove ${parts}, ${which}.`)))
      return said({ removed: nothing, isAborted: true }, 'Nothing was removed.', EXIT.wrong);

    const removed = await context.change({
      action: 'prune',
      about: { filter: { olderThan: age === undefined ? 'retention' : String(age) } },
      make: (changing) => context.progress('pruning').during(clock, changing.prune(age)),
      came: ({ finished, orphans, expired }) => ({ counts: { finished, orphans, expired } }),
    });
    const { finished, orphans, expired } = removed;
    return said(
      { removed },
      `Removed ${plural(finished, 'finished job')}, ${plural(orphans, 'orphan')} and ${plural(expired, 'job')} with an expired lock.`,
    );
  },
};

import type { Clock } from '../domain/clock.js';
import type { EventName, SchedulerEvents } from '../domain/events.js';
import { errorKind } from './error-kind.js';
import type { Instruments } from './instruments.js';
import type { Tally } from './tally.js';

/** Looks at what this process remembers, and asks the database nothing: that it goes well says little. */
const LOCAL_LOOP = 'watch locks';

export type Reactions = { readonly [E in EventName]?: (event: SchedulerEvents[E]) => void };

/** What events about schedules and the worker itself count; none of them comes once per job. */
export function otherReactions(to: Instruments, tally: Tally, clock: Clock): Reactions {
  return {
    'worker:claim': ({ found, claimed }) => {
      const lost = found - claimed;
      tally.locks.add(claimed, lost);
      to.rounds.inc({ result: claimed > 0 ? 'won' : lost > 0 ? 'lost' : 'empty' });
      to.claimed.inc({ result: 'won' }, claimed);
      to.claimed.inc({ result: 'lost' }, lost);
    },
    'worker:renewed': ({ locks }) => to.renewed.inc(locks),
    'worker:cycle': ({ operation: loop, duration }) => {
      const now = clock.now();
      to.cycles.observe({ loop }, duration / 1000);
      to.goodCycle.set({ loop }, now.getTime() / 1000);
      if (loop !== LOCAL_LOOP) tally.lastGoodCycle = { at: now, monotonic: clock.monotonic() };
    },
    'worker:state': ({ state }) => {
      tally.runningSince = state === 'Running' ? clock.monotonic() : undefined;
    },
    'worker:trouble': ({ operation, error }) => {
      const kind = errorKind(operation, error);
      // `schedule:pushed` tells of those, and also of a whole batch that failed for another reason.
      if (kind !== 'push') tally.count(kind);
    },
    'schedule:due': ({ late }) => to.lateness.observe(Math.max(0, late) / 1000),
    'schedule:skipped': ({ count, reason }) => to.skips.inc({ reason }, count ?? 1),
    'schedule:decided': ({ won, lost, refused }) => {
      tally.locks.add(won, lost);
      to.decisions.inc({ result: 'won' }, won);
      to.decisions.inc({ result: 'lost' }, lost);
      to.decisions.inc({ result: 'refused' }, refused);
    },
    'schedule:pushed': ({ pushed, failed }) => {
      tally.pushes.add(pushed, failed);
      tally.count('push', failed);
      to.pushes.inc({ result: 'ok' }, pushed);
      to.pushes.inc({ result: 'failed' }, failed);
    },
    'schedule:disabled': () => tally.count('cron'),
    'schedule:unreadable': () => tally.count('decode'),
  };
}

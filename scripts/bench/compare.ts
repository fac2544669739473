import { figure, type Figure } from './figures.js';
import type { PeerResult } from './peers/index.js';

/** How many times as fast as them Chronos has to be. */
const TARGETS: Record<string, number> = { Agenda: 50, BullMQ: 1 };

/** Chronos beside other schedulers: the same jobs at the same concurrency, in the same run. */
export function compare(chronos: Figure, peers: readonly PeerResult[]): Figure[] {
  return peers
    .filter((peer) => 'runs' in peer)
    .map(({ peer, version, settings, jobs, runs }) =>
      figure({
        ...{
          id: `peer-${peer}`,
          what: `no-op jobs against ${peer} ${version}`,
          unit: 'jobs/s',
        },
        ...{ runs: chronos.runs, floors: runs, against: peer, note: `${jobs} jobs; ${settings}` },
        ...(TARGETS[peer] !== undefined && { target: TARGETS[peer] }),
      }),
    );
}

import { figure, type Figure } from './figures.js';
import type { PeerFigures } from './peers/index.js';

/** The ratio of Chronos's throughput to that of a peer that should be reached. */
const TARGETS: Record<string, number> = { Agenda: 50, BullMQ: 1 };

/** Chronos compared with other schedulers: no-op jobs at the same concurrency, in the same run. */
export function compare(chronos: Figure, peers: readonly PeerFigures[]): Figure[] {
  return peers.map(({ peer, version, settings, jobs, runs }) =>
    figure({
      ...{ id: `peer-${peer}`, what: `no-op jobs against ${peer} ${version}`, unit: 'jobs/s' },
      ...{ runs: chronos.runs, floors: runs, against: peer, note: `${jobs} jobs; ${settings}` },
      ...(TARGETS[peer] !== undefined && { target: TARGETS[peer] }),
    }),
  );
}

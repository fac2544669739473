import type { ClockAnchor } from '../runtime/database-clock.js';
import { groupBy } from '../domain/group-by.js';
import { leaseKey, type KeptLease } from './renewer.js';

export interface ThreadInput {
  uri: string;
  lockTimeout: number;
  connectTimeout: number;
}

/** Leases that differ in their ids alone, as those of one claim do: a message costs by what is in it. */
export interface LeaseGroup extends Omit<KeptLease, 'id' | 'key'> {
  ids: string[];
}

export type ToThread =
  | { kind: 'keep'; leases: readonly LeaseGroup[] }
  | { kind: 'drop'; keys: readonly string[] }
  | { kind: 'beat'; anchor: ClockAnchor | undefined }
  | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready' }
  | { kind: 'unreachable'; message: string }
  | { kind: 'renewed'; keys: readonly string[]; sentAt: number }
  | { kind: 'lost'; keys: readonly string[] }
  | { kind: 'recovered'; failures: number }
  | { kind: 'trouble'; message: string; failures: number; retryIn: number };

export function pack(leases: readonly KeptLease[]): LeaseGroup[] {
  const equal = groupBy(
    leases,
    ({ kind, token, renewedAt, renewUntil, buffered }) =>
      `${kind} ${token} ${renewedAt} ${renewUntil} ${buffered}`,
  );
  return [...equal.values()].map((group) => {
    const { kind, token, length, renewedAt, renewUntil, buffered } = group[0];
    const ids = group.map(({ id }) => id);
    return { kind, token, length, renewedAt, renewUntil, buffered, ids };
  });
}

export function unpack(groups: readonly LeaseGroup[]): KeptLease[] {
  return groups.flatMap(({ ids, ...equal }) =>
    ids.map((id) => ({ ...equal, id, key: leaseKey(id, equal.token) })),
  );
}

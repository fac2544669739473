import type { ClockAnchor } from '../runtime/database-clock.js';
import type { SlotVersion } from './lease-table.js';

export interface ThreadInput {
  uri: string;
  lockTimeout: number;
  connectTimeout: number;
  /** The tables of leases that exist already. */
  tables: readonly SharedArrayBuffer[];
  /** The length of the shortest lease in them, in milliseconds. */
  shortest: number;
}

export type ToThread =
  | { kind: 'grow'; table: SharedArrayBuffer }
  | { kind: 'shorter'; length: number }
  | { kind: 'beat'; anchor: ClockAnchor | undefined }
  | { kind: 'stop' };

export type FromThread =
  | { kind: 'ready' }
  | { kind: 'unreachable'; message: string }
  | { kind: 'renewed'; slots: readonly SlotVersion[]; sentAt: number }
  | { kind: 'lost'; slots: readonly SlotVersion[] }
  | { kind: 'recovered'; failures: number }
  | { kind: 'trouble'; message: string; failures: number; retryIn: number };

import type { ClockAnchor } from '../runtime/database-clock.js';
import type { Begun, KeptLease } from './renewer.js';

export interface ThreadInput {
  uri: string;
  lockTimeout: number;
  connectTimeout: number;
}

export type ToThread =
  | { kind: 'keep'; leases: readonly KeptLease[] }
  | { kind: 'begin'; begun: readonly Begun[] }
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

import type { Clock } from '../domain/clock.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/service.js';
import type { WorkerDocument } from '../store/documents.js';
import type { Store } from '../store/store.js';

/** How long a silent worker stays listed. */
const KEPT = 86_400_000;

export type WorkerFacts = Omit<WorkerDocument, 'heartbeatAt' | 'expiresAt'>;

export interface HeartbeatParts {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'saveHeartbeat'>;
  interval: number;
  facts: () => WorkerFacts;
  /** Measures the database's clock again. */
  synchronise: () => Promise<void>;
}

/** Shows that this process lives, and keeps its idea of the database's time true. */
export class Heartbeat extends PeriodicService {
  readonly name = 'heartbeat';
  readonly #parts: HeartbeatParts;

  constructor(parts: HeartbeatParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  async runOnce(): Promise<number> {
    await this.#parts.synchronise();
    await this.beat();
    return this.#parts.interval;
  }

  async beat(): Promise<void> {
    const heartbeatAt = this.clock.now();
    const expiresAt = new Date(heartbeatAt.getTime() + KEPT);
    await this.#parts.store.saveHeartbeat({ ...this.#parts.facts(), heartbeatAt, expiresAt });
  }
}

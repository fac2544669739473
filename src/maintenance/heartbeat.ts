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
  #shown = false;

  constructor(parts: HeartbeatParts) {
    super(parts.clock, parts.events);
    this.#parts = parts;
  }

  async runOnce(): Promise<number> {
    await this.#parts.synchronise();
    await this.#save(this.#parts.facts());
    return this.#parts.interval;
  }

  /** The last sign of life of a process that stops cleanly. */
  async farewell(): Promise<void> {
    await this.stop();
    // A process that only dispatches was never listed.
    if (this.#shown) await this.#save({ ...this.#parts.facts(), state: 'Stopped' });
  }

  async #save(facts: WorkerFacts): Promise<void> {
    const heartbeatAt = this.clock.now();
    const expiresAt = new Date(heartbeatAt.getTime() + KEPT);
    await this.#parts.store.saveHeartbeat({ ...facts, heartbeatAt, expiresAt });
    this.#shown = true;
  }
}

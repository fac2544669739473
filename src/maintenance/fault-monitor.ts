import type { ResolvedOptions } from '../config/options.js';
import type { Clock } from '../domain/clock.js';
import { ChronosError } from '../domain/errors.js';
import type { Operation, SchedulerEvents } from '../domain/events.js';
import type { EventBus } from '../runtime/event-bus.js';
import { PeriodicService } from '../runtime/periodic-service.js';
import { isDenied } from '../store/mongo-errors.js';
import { EXPIRY_INDEX } from '../store/schema/fields.js';
import { findNewerInstallation } from '../store/schema/installation.js';
import type { Store } from '../store/store.js';

/** Reading all indexes costs a command per collection. */
const INSPECT_MS = 60_000;

/** A worker that may not do one of these does no work. The others only make it slower or keep old data longer. */
const ESSENTIAL: ReadonlySet<Operation> = new Set([
  'claim jobs',
  'settle',
  'renew locks',
  'sweep',
  'enqueue schedules',
  'heartbeat',
]);

interface FaultMonitorDeps {
  clock: Clock;
  events: EventBus;
  store: Pick<Store, 'readInstallation' | 'inspectCollections'>;
  options: Pick<ResolvedOptions, 'heartbeatInterval' | 'lockTimeout'>;
}

/**
 * Finds faults of a running worker that do not pass by retrying: a newer version was installed, collections or
 * indexes are missing, or the database user was denied an essential operation for longer than `lockTimeout`.
 */
export class FaultMonitor extends PeriodicService {
  readonly name = 'check installation';
  readonly #deps: FaultMonitorDeps;
  /** Since when (monotonic) each operation has failed only because the user may not do it. */
  readonly #deniedSince = new Map<Operation, number>();
  readonly #onError = (event: SchedulerEvents['worker:error']): void => this.#observe(event);
  /** Monotonic. */
  #inspectAt: number;
  #wasIncomplete = false;
  #onFault: (fault: ChronosError) => void = () => undefined;

  constructor(deps: FaultMonitorDeps) {
    super(deps.clock, deps.events);
    this.#deps = deps;
    this.#inspectAt = deps.clock.monotonic() + INSPECT_MS;
  }

  /** Calls the listener with each critical fault that it finds. */
  onFault(listener: (fault: ChronosError) => void): void {
    this.#onFault = listener;
  }

  override start(): void {
    this.events.on('worker:error', this.#onError);
    super.start();
  }

  override async stop(): Promise<void> {
    this.events.off('worker:error', this.#onError);
    this.#deniedSince.clear();
    await super.stop();
  }

  async runOnce(): Promise<number> {
    const { store, options } = this.#deps;
    const newer = findNewerInstallation(await store.readInstallation());
    if (newer !== null) this.#onFault(newer);
    else if (this.clock.monotonic() >= this.#inspectAt) await this.#inspect();
    return options.heartbeatInterval;
  }

  async #inspect(): Promise<void> {
    const missing = (await this.#deps.store.inspectCollections()).flatMap(
      ({ collection, exists, missing: indexes }) =>
        exists
          ? indexes.filter((name) => name !== EXPIRY_INDEX).map((name) => `${collection}.${name}`)
          : [collection],
    );
    // An administrator may be replacing an index: the next round looks again.
    const wasIncomplete = this.#wasIncomplete;
    this.#wasIncomplete = missing.length > 0;
    if (!this.#wasIncomplete) this.#inspectAt = this.clock.monotonic() + INSPECT_MS;
    else if (wasIncomplete) this.#onFault(incomplete(missing));
  }

  #observe({ operation, error, failures }: SchedulerEvents['worker:error']): void {
    if (!ESSENTIAL.has(operation)) return;
    const now = this.clock.monotonic();
    // The number of failures in a row starts again after a success.
    if (!isDenied(error) || failures === 1) this.#deniedSince.delete(operation);
    if (!isDenied(error)) return;
    const since = this.#deniedSince.get(operation) ?? now;
    this.#deniedSince.set(operation, since);
    if (now - since > this.#deps.options.lockTimeout) this.#onFault(denied(operation, error, now - since));
  }
}

function incomplete(missing: readonly string[]): ChronosError {
  return new ChronosError(
    'NOT_INSTALLED',
    `collections or indexes are missing: ${missing.join(', ')}. Run \`chronos install\` to create them again, then start the worker`,
  );
}

function denied(operation: Operation, error: Error, ms: number): ChronosError {
  // The rest of the server's message is the whole command.
  const [reason] = error.message.split(' {');
  return new ChronosError(
    'NOT_AUTHORIZED',
    `MongoDB has denied the operation '${operation}' to the database user for ${Math.round(ms / 1000)} s: ${reason}. ` +
      'Grant it the role chronosWorker (deploy/mongodb/roles.json), then start the worker',
    { cause: error },
  );
}

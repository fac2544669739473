import { randomUUID } from 'node:crypto';
import type { WorkerSettings } from '../config/environment.js';
import type { Clock } from '../domain/clock.js';
import type { Duration } from '../domain/duration.js';
import { audited, type AuditDetails } from '../operations/audited.js';
import type { Scheduler } from '../scheduler.js';
import { confirm } from './confirm.js';
import type { Given } from './given.js';
import { Output } from './output.js';
import { ProgressBar } from './progress-bar.js';
import type { Reading } from './reading.js';
import { readSettings, type Environment } from './settings.js';
import { styled, type Line } from './styled.js';

/** How long a person waits for MongoDB, unless CONNECT_TIMEOUT says otherwise. */
const PATIENCE = '10s';

/** The process a command runs in. */
export interface Surroundings {
  environment: Environment;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  clock: Clock;
  /** Who runs the command, for the audit collection. */
  who: string;
}

/** A change that somebody asked for, as the audit collection tells it. */
export interface CommandChange<A> {
  /** As the HTTP API calls it. */
  action: string;
  about: AuditDetails;
  make: (scheduler: Scheduler) => Promise<A>;
  /** What came of it, where there is more to tell than that it was done. */
  came?: (answer: A) => AuditDetails | 'refused';
}

/** What a command has to work with. The connection is made when it is first needed. */
export class Context {
  readonly given: Given;
  readonly clock: Clock;
  readonly out: Output;
  readonly err: Output;
  readonly surroundings: Surroundings;
  #scheduler: Scheduler | undefined;
  #interrupted: AbortController | undefined;
  readonly #interrupt = (): void => this.#interrupted?.abort();

  constructor(given: Given, surroundings: Surroundings) {
    const { stdout, stderr, environment, clock } = surroundings;
    this.given = given;
    this.surroundings = surroundings;
    this.clock = clock;
    this.out = new Output(stdout, environment);
    this.err = new Output(stderr, environment);
  }

  get who(): string {
    return this.surroundings.who;
  }

  get isJson(): boolean {
    return this.given.flag('json');
  }

  settings(): WorkerSettings {
    return readSettings(this.surroundings.environment, this.given);
  }

  /** For those who look at a system. */
  scheduler(): Promise<Reading> {
    return this.#open();
  }

  /** The same with the definitions and handlers of the module that --handlers or HANDLERS names. */
  async withDefinitions(connectTimeout?: Duration): Promise<Reading> {
    const { handlers } = this.settings();
    const scheduler = await this.#open(connectTimeout);
    const { loadHandlers } = await import('../process/handlers.js');
    if (handlers !== undefined) await loadHandlers(scheduler, handlers);
    return scheduler;
  }

  /** The one way to change jobs and schedules: it is written down who does it, before and after. */
  async change<A>({ action, about, make, came = () => ({}) }: CommandChange<A>): Promise<A> {
    const scheduler = await this.#open();
    const { answer, isRecorded } = await audited({
      ...{ operations: scheduler.operations, who: this.who, action, requestId: randomUUID() },
      before: about,
      change: () => make(scheduler),
      after: came,
    });
    const doubt = `${action} was done, and the audit collection knows only that it was attempted`;
    if (!isRecorded) this.err.lines(styled('yellow', doubt));
    return answer;
  }

  /** Makes what has to be there before anything can be written down. */
  async install(): Promise<void> {
    await (await this.#open()).install();
  }

  /** Aborted by the first Ctrl-C; the second one ends the process. Who does not ask for it is ended by the first. */
  get signal(): AbortSignal {
    if (this.#interrupted === undefined) {
      this.#interrupted = new AbortController();
      process.once('SIGINT', this.#interrupt).once('SIGTERM', this.#interrupt);
    }
    return this.#interrupted.signal;
  }

  confirm(what: string): Promise<boolean> {
    const { stdin: input } = this.surroundings;
    return confirm({ err: this.err, input, yes: this.given.flag('yes') }, what);
  }

  progress(what: string): ProgressBar {
    return new ProgressBar(this.err, what);
  }

  /** One of many answers, as it comes. */
  emit(data: unknown, line: Line): void {
    if (this.isJson) this.out.documentLine(data);
    else this.out.lines(line);
  }

  async close(): Promise<void> {
    process.off('SIGINT', this.#interrupt).off('SIGTERM', this.#interrupt);
    await this.#scheduler?.stop(0);
  }

  /** Loaded when it is needed: a page of help does not need it. */
  async #open(connectTimeout: Duration = PATIENCE): Promise<Scheduler> {
    if (this.#scheduler !== undefined) return this.#scheduler;
    const { workerId: _, ...options } = this.settings().options;
    const { Scheduler } = await import('../scheduler.js');
    this.#scheduler = new Scheduler({ connectTimeout, ...options });
    return this.#scheduler;
  }
}

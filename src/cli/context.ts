import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import type { WorkerSettings } from '../config/environment.js';
import type { Clock } from '../domain/clock.js';
import type { Duration } from '../domain/duration.js';
import { ChronosError } from '../domain/errors.js';
import { type AuditDetails, withAudit } from '../operations/audit.js';
import type { Operations } from '../operations/operations.js';
import type { Scheduler } from '../scheduler.js';
import type { Arguments } from './arguments.js';
import { type Environment, readSettings } from './settings.js';
import { Output } from './terminal/output.js';
import { ProgressBar } from './terminal/progress-bar.js';
import { type Line, styled } from './terminal/styled.js';

/** How long a command waits for MongoDB, unless CONNECT_TIMEOUT is set. */
const CONNECT_TIMEOUT = '10s';
const MAX_AUDIT_USER_LENGTH = 200;

/** The process that a command runs in. */
export interface Host {
  environment: Environment;
  stdin: NodeJS.ReadStream;
  stdout: NodeJS.WriteStream;
  stderr: NodeJS.WriteStream;
  clock: Clock;
  /** Who runs the command, for audit entries. */
  who: string;
}

/** A change, and how it is recorded in the audit collection. */
export interface CommandChange<A> {
  /** The HTTP API uses the same name. */
  action: string;
  before: AuditDetails;
  change: (scheduler: Scheduler) => Promise<A>;
  /** Details that are known only after the change. */
  after?: (result: A) => AuditDetails | 'refused';
}

/**
 * The part of a Scheduler that changes nothing. The rest is available only through `Context.change`, so that no command
 * can make a change without an audit entry.
 */
export type ReadOnlyScheduler = Pick<
  Scheduler,
  'getExecutionOrder' | 'getExecutions' | 'getJob' | 'getSchedule' | 'getSkips' | 'pageSchedules'
> & {
  operations: Pick<
    Operations,
    | ('configuration' | 'countMatching' | 'countPrunable' | 'diffSchedules' | 'doctor' | 'explainJob')
    | ('listAudit' | 'listDead' | 'listDefinitions' | 'listExecutions' | 'listJobs' | 'listQueues')
    | ('listWorkers' | 'previewBackfill' | 'showExecution' | 'showJob' | 'status')
  >;
};

/** What a command works with: arguments, output, and a Scheduler that connects when it is first used. */
export class Context {
  readonly args: Arguments;
  readonly clock: Clock;
  readonly out: Output;
  readonly err: Output;
  readonly host: Host;
  #scheduler: Scheduler | undefined;
  #interrupted: AbortController | undefined;
  readonly #interrupt = (): void => this.#interrupted?.abort();

  constructor(args: Arguments, host: Host) {
    const { stdout, stderr, environment, clock } = host;
    this.args = args;
    this.host = host;
    this.clock = clock;
    this.out = new Output(stdout, environment);
    this.err = new Output(stderr, environment);
  }

  get who(): string {
    return this.host.who;
  }

  get isJson(): boolean {
    return this.args.flag('json');
  }

  settings(): WorkerSettings {
    return readSettings(this.host.environment, this.args);
  }

  scheduler(): Promise<ReadOnlyScheduler> {
    return this.#open();
  }

  /** The Scheduler with the handlers and definitions of the module that --handlers or HANDLERS names. */
  async withDefinitions(connectTimeout?: Duration): Promise<ReadOnlyScheduler> {
    const { handlers } = this.settings();
    const scheduler = await this.#open(connectTimeout);
    const { loadHandlers } = await import('../process/load-handlers.js');
    if (handlers !== undefined) await loadHandlers(scheduler, handlers);
    return scheduler;
  }

  /** The only way to change jobs and schedules. Writes audit entries before and after the change. */
  async change<A>({ action, before, change, after = () => ({}) }: CommandChange<A>): Promise<A> {
    const scheduler = await this.#open();
    const { result, isRecorded } = await withAudit({
      ...{ operations: scheduler.operations, who: this.who, action, requestId: randomUUID(), before, after },
      change: () => change(scheduler),
    });
    if (!isRecorded) {
      const warning = `${action} was done, but its audit entry could not be written (only that of the attempt)`;
      this.err.lines(styled('yellow', warning));
    }
    return result;
  }

  /** Not audited: it creates the audit collection. */
  async install(): Promise<void> {
    await (await this.#open()).install();
  }

  /** Aborted by the first Ctrl-C; the second one ends the process. If a command never reads it, the first one does. */
  get signal(): AbortSignal {
    if (this.#interrupted === undefined) {
      this.#interrupted = new AbortController();
      process.once('SIGINT', this.#interrupt).once('SIGTERM', this.#interrupt);
    }
    return this.#interrupted.signal;
  }

  confirm(question: string): Promise<boolean> {
    return confirm({ err: this.err, input: this.host.stdin, yes: this.args.flag('yes') }, question);
  }

  progress(label: string): ProgressBar {
    return new ProgressBar(this.err, label);
  }

  /** Prints one of many results as soon as it is there. */
  emit(data: unknown, line: Line): void {
    if (this.isJson) this.out.documentLine(data);
    else this.out.lines(line);
  }

  async close(): Promise<void> {
    process.off('SIGINT', this.#interrupt).off('SIGTERM', this.#interrupt);
    await this.#scheduler?.stop(0);
  }

  /** Imports the Scheduler on demand, so that help pages appear quickly. */
  async #open(connectTimeout: Duration = CONNECT_TIMEOUT): Promise<Scheduler> {
    if (this.#scheduler !== undefined) return this.#scheduler;
    const { workerId: _, ...options } = this.settings().options;
    const { Scheduler } = await import('../scheduler.js');
    this.#scheduler = new Scheduler({ connectTimeout, ...options });
    return this.#scheduler;
  }
}

export interface ConfirmOptions {
  /** The question goes to standard error: the output of the command may be redirected to a file. */
  err: Pick<Output, 'isTerminal' | 'lines'>;
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  /** Do not ask. */
  yes: boolean;
}

/** Asks before a change that cannot be undone. Without a terminal, --yes is required. */
export async function confirm({ err, input, yes }: ConfirmOptions, question: string): Promise<boolean> {
  if (yes) return true;
  if (input.isTTY !== true || !err.isTerminal) {
    throw new ChronosError(
      'INVALID_ARGUMENT',
      `${question} There is no terminal to ask for confirmation: add --yes to continue.`,
    );
  }
  err.lines(`${question} Continue? [y/N]`);
  const reader = createInterface({ input });
  try {
    const reply = await new Promise<string>((resolve) => {
      reader.once('line', resolve).once('close', () => resolve(''));
    });
    return /^\s*y(es)?\s*$/i.test(reply);
  } finally {
    reader.close();
  }
}

/**
 * Who runs the command, for audit entries: `cli:ada@host`. Taken from the operating system, because environment variables
 * can be set to anything. In a container the user may have no name.
 */
export function auditUser(system = { userInfo, hostname }): string {
  let user: string;
  try {
    user = system.userInfo().username;
  } catch {
    user = `uid-${process.getuid?.() ?? 'unknown'}`;
  }
  return `cli:${user}@${system.hostname()}`.slice(0, MAX_AUDIT_USER_LENGTH);
}

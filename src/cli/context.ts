import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import type { WorkerSettings } from '../config/environment.js';
import type { InstallOptions } from '../config/method-options.js';
import type { Clock } from '../domain/clock.js';
import type { Duration } from '../domain/duration.js';
import { type AuditedChange, withAudit } from '../operations/audit.js';
import type { JobHandle } from '../jobs/job-handle.js';
import type { Operations } from '../operations/operations.js';
import type { Scheduler } from '../scheduler.js';
import { type Arguments, invalidArgument } from './arguments.js';
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
export interface CommandChange<A>
  extends Pick<AuditedChange<A>, 'action' | 'before'>, Partial<Pick<AuditedChange<A>, 'after'>> {
  change: (scheduler: Scheduler) => Promise<A>;
}

/**
 * The methods that change nothing. All others are available only through `Context.change`, so that no command can make a
 * change without an audit entry.
 */
export type ReadOnlyOperations = Pick<
  Operations,
  | ('configuration' | 'countMatching' | 'countPrunable' | 'diffSchedules' | 'doctor' | 'explainJob')
  | ('listAudit' | 'listDead' | 'listDefinitions' | 'listExecutions' | 'listJobs' | 'listQueues')
  | ('listWorkers' | 'previewBackfill' | 'showExecution' | 'showJob' | 'status')
>;
export type ReadOnlyScheduler = Pick<
  Scheduler,
  'getExecutionOrder' | 'getExecutions' | 'getJob' | 'getSchedule' | 'getSkips' | 'listSchedules'
> & { job(id: string): Pick<JobHandle, 'wait'>; operations: ReadOnlyOperations };

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

  get isJson(): boolean {
    return this.args.flag('json');
  }

  settings(): WorkerSettings {
    return readSettings(this.host.environment, this.args);
  }

  scheduler(): Promise<ReadOnlyScheduler> {
    return this.#open();
  }

  async operations(): Promise<ReadOnlyOperations> {
    return (await this.#open()).operations;
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
    const { operations } = scheduler;
    const { result, isRecorded } = await withAudit({
      ...{ operations, who: this.host.who, action, requestId: randomUUID(), before, after },
      change: () => change(scheduler),
    });
    if (!isRecorded) {
      const warning = `${action} succeeded, but its result could not be written to the audit collection`;
      this.err.lines(styled('yellow', warning));
    }
    return result;
  }

  /** Not audited: it creates the audit collection. */
  async install(options: InstallOptions): Promise<void> {
    await (await this.#open()).install(options);
  }

  /** Aborted by the first Ctrl-C; the second one ends the process. In a command that never uses it, the first one does. */
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

  /** Prints one of many results immediately. */
  emit(data: unknown, ...lines: readonly Line[]): void {
    if (this.isJson) this.out.documentLine(data);
    else this.out.lines(...lines);
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
    this.#scheduler = new Scheduler({ connectTimeout, ...options, logger: false });
    return this.#scheduler;
  }
}

export interface ConfirmOptions {
  /** The question goes to standard error: the output of the command may be redirected to a file. */
  err: Pick<Output, 'isTerminal' | 'lines'>;
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  /** Skips the question. */
  yes: boolean;
}

/** Asks before a change that cannot be undone. Without a terminal, --yes is required. */
export async function confirm({ err, input, yes }: ConfirmOptions, question: string): Promise<boolean> {
  if (yes) return true;
  if (input.isTTY !== true || !err.isTerminal)
    throw invalidArgument(`${question} There is no terminal to ask for confirmation: add --yes to continue.`);
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

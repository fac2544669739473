import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { WorkerSettings } from '../config/environment.js';
import { escapedJson, printable } from '../domain/printable.js';

/** Where the lines of a process go: its standard output, or its standard error where that is taken by an answer. */
export type LogStream = 'stdout' | 'stderr';

const DESCRIPTOR = { stdout: 1, stderr: 2 } as const;

/** Pino adds the messages of all causes, and those of the driver say the same three times; the stack has them. */
const serializers = {
  err: (error: Error): object => Object.assign(pino.stdSerializers.err(error), { message: error.message }),
};

export function createLogger(
  { logLevel, logFormat }: Pick<WorkerSettings, 'logLevel' | 'logFormat'>,
  to: LogStream = 'stdout',
): Logger {
  const { isTTY } = process[to];
  const format = logFormat ?? (isTTY ? 'pretty' : 'json');
  if (format === 'json') {
    // Pino escapes only what JSON requires, and a file of lines is shown on a terminal sooner or later.
    const hooks = { streamWrite: escapedJson };
    return pino({ level: logLevel, hooks, serializers }, pino.destination(DESCRIPTOR[to]));
  }
  const stream = pretty({
    sync: true,
    destination: DESCRIPTOR[to],
    colorize: isTTY,
    hideObject: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: lineOf,
  });
  return pino({ level: logLevel, serializers }, stream);
}

/** What was stored, or thrown, must not reach the terminal as it is. */
function lineOf({ msg, err, jobId }: Record<string, unknown>): string {
  const reason = (err as { message?: unknown } | undefined)?.message;
  const error = typeof reason === 'string' && reason !== '' ? `: ${reason}` : '';
  return printable(`${String(msg)}${error}${typeof jobId === 'string' ? `  [${jobId}]` : ''}`);
}

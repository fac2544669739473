import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { WorkerSettings } from '../config/environment.js';

/** Where the lines of a process go: its standard output, or its standard error where that is taken by an answer. */
export type LogStream = 'stdout' | 'stderr';

const DESCRIPTOR = { stdout: 1, stderr: 2 } as const;

export function createLogger(
  { logLevel, logFormat }: Pick<WorkerSettings, 'logLevel' | 'logFormat'>,
  to: LogStream = 'stdout',
): Logger {
  const { isTTY } = process[to];
  const format = logFormat ?? (isTTY ? 'pretty' : 'json');
  if (format === 'json') return pino({ level: logLevel }, pino.destination(DESCRIPTOR[to]));
  const stream = pretty({
    sync: true,
    destination: DESCRIPTOR[to],
    colorize: isTTY,
    hideObject: true,
    ignore: 'pid,hostname',
    translateTime: 'SYS:HH:MM:ss.l',
    messageFormat: '{msg}{if err.message}: {err.message}{end}{if jobId}  [{jobId}]{end}',
  });
  return pino({ level: logLevel }, stream);
}

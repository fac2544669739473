import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import type { WorkerSettings } from '../config/environment.js';
import { escapedJson } from '../domain/text.js';
import { formatLine } from '../runtime/logger.js';

/** Commands that print their result to standard output log to standard error. */
const DESCRIPTOR = { stdout: 1, stderr: 2 } as const;

/** Pino appends the messages of all causes, and those of the driver repeat each other; the stack contains them anyway. */
const serializers = {
  err: (error: Error): object => Object.assign(pino.stdSerializers.err(error), { message: error.message }),
};

export function createLogger(
  { logLevel, logFormat }: Pick<WorkerSettings, 'logLevel' | 'logFormat'>,
  to: keyof typeof DESCRIPTOR = 'stdout',
): Logger {
  const { isTTY } = process[to];
  const format = logFormat ?? (isTTY ? 'pretty' : 'json');
  if (format === 'json') {
    // Pino escapes only what JSON requires, but people also read log files on terminals.
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
    messageFormat: ({ msg, ...fields }) => formatLine(String(msg), fields),
  });
  return pino({ level: logLevel, serializers }, stream);
}

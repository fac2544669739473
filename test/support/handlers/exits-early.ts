import path from 'node:path';
import { runShell } from '../../../src/handlers/built-in/shell.js';
import { aJobContext } from './job-context.js';
import { pidsIn } from './processes.js';

const directory = process.argv[2] ?? '';
const shell =
  'trap "" TERM; echo $$ >> pids; (echo x; sleep 300) & echo $! >> pids; while :; do sleep 1; done';
void runShell({ file: '/bin/sh', args: ['-c', shell], cwd: directory }, aJobContext(), {
  PATH: process.env['PATH'] ?? '',
});
await pidsIn(path.join(directory, 'pids'), 2);
process.exit(0);

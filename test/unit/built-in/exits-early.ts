import path from 'node:path';
import { runShell } from '../../../src/built-in/shell.js';
import { aContext } from './context.js';
import { pidsIn } from './processes.js';

const directory = process.argv[2] ?? '';
const shell =
  'trap "" TERM; echo $$ >> pids; (echo x; sleep 300) & echo $! >> pids; while :; do sleep 1; done';
void runShell({ file: '/bin/sh', args: ['-c', shell], cwd: directory }, aContext(), {
  PATH: process.env['PATH'],
});
await pidsIn(path.join(directory, 'pids'), 2);
process.exit(0);

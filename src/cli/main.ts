#!/usr/bin/env node
import dotenv from 'dotenv';
import { exitAfterGrace } from '../process/exit.js';
import { systemClock } from '../runtime/system-clock.js';
import { auditUser } from './context.js';
import { runProgram } from './program.js';

dotenv.config({ quiet: true });
const { stdin, stdout, stderr, env: environment } = process;
// A pipe such as `chronos jobs list | head` may close early.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
const host = { environment, stdin, stdout, stderr, clock: systemClock, who: auditUser() };
exitAfterGrace(await runProgram(process.argv.slice(2), host));

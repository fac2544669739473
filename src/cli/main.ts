#!/usr/bin/env node
import dotenv from 'dotenv';
import { exitSoon } from '../runtime/exit-soon.js';
import { systemClock } from '../runtime/system-clock.js';
import { runProgram } from './program.js';

dotenv.config({ quiet: true });
const { stdin, stdout, stderr, env: environment } = process;
// `chronos jobs list | head`: whoever read has seen enough.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
exitSoon(await runProgram(process.argv.slice(2), { environment, stdin, stdout, stderr, clock: systemClock }));

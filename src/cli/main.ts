#!/usr/bin/env node
import dotenv from 'dotenv';
import { exitSoon } from '../runtime/exit-soon.js';
import { systemClock } from '../runtime/system-clock.js';
import { operatorOf } from './operator.js';
import { runProgram } from './program.js';

dotenv.config({ quiet: true });
const { stdin, stdout, stderr, env: environment } = process;
// `chronos jobs list | head`: whoever read has seen enough.
stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
const surroundings = { environment, stdin, stdout, stderr, clock: systemClock, who: operatorOf() };
exitSoon(await runProgram(process.argv.slice(2), surroundings));

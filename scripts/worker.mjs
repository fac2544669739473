// npm run worker: dist/worker.js, with the example handlers unless HANDLERS names others.
import { config } from 'dotenv';

config({ quiet: true });
if (!process.env.HANDLERS && process.env.NODE_ENV !== 'production')
  process.env.HANDLERS = 'dist/examples/schedules.js';
await import('../dist/worker.js');

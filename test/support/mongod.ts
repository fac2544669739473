// One MongoDB for each test process: MONGODB_URI, or an embedded replica set with one node.
import mongoose from 'mongoose';
import { startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { dropDatabases } from './database.js';

const SLOW_START_MS = 5_000;

// Overrides the shell: the embedded MongoDB does not start in production.
process.env['NODE_ENV'] = 'test';

let embedded: EmbeddedMongod | undefined;

export async function mochaGlobalSetup(): Promise<void> {
  const uri = process.env['MONGODB_URI'];
  if (uri) {
    process.env['CHRONOS_TEST_URI'] = uri;
    return;
  }
  const startedAt = performance.now();
  embedded = await startMongod();
  const took = performance.now() - startedAt;
  if (took > SLOW_START_MS) console.log(`MongoDB took ${(took / 1000).toFixed(1)} s to start`);
  process.env['CHRONOS_TEST_URI'] = embedded.uri;
  await disableTtl(embedded.uri);
}

/** With a manual clock, documents of a test may already be expired by the clock of the server, which would delete them. */
async function disableTtl(uri: string): Promise<void> {
  const connection = await mongoose.createConnection(uri).asPromise();
  await connection.getClient().db('admin').command({ setParameter: 1, ttlMonitorEnabled: false });
  await connection.destroy();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await dropDatabases();
  await embedded?.stop();
}

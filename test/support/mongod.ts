// One MongoDB for the whole test run: the one of MONGODB_URI, else an embedded one-node replica set.
import mongoose from 'mongoose';
import { startMongod, type EmbeddedMongod } from '@chronos/mongod';
import { dropDatabases } from './database.js';

const SLOW_START_MS = 5_000;

// Whatever the shell has: the tests are no production, and the embedded MongoDB refuses to be.
process.env['NODE_ENV'] = 'test';

let embedded: EmbeddedMongod | undefined;

export async function mochaGlobalSetup(): Promise<void> {
  const given = process.env['MONGODB_URI'];
  if (given) {
    process.env['CHRONOS_TEST_URI'] = given;
    return;
  }
  const startedAt = performance.now();
  embedded = await startMongod();
  const took = performance.now() - startedAt;
  if (took > SLOW_START_MS) console.log(`MongoDB took ${(took / 1000).toFixed(1)} s to start`);
  process.env['CHRONOS_TEST_URI'] = embedded.uri;
  await keepWhatExpired(embedded.uri);
}

/** Tests move clocks by hand: what expired by the server's own clock must not vanish while they look at it. */
async function keepWhatExpired(uri: string): Promise<void> {
  const connection = await mongoose.createConnection(uri).asPromise();
  await connection.getClient().db('admin').command({ setParameter: 1, ttlMonitorEnabled: false });
  await connection.destroy();
}

export async function mochaGlobalTeardown(): Promise<void> {
  await dropDatabases();
  await embedded?.stop();
}

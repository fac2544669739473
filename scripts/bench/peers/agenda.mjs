import { MongoBackend } from '@agendajs/mongo-backend';
import { Agenda } from 'agenda';
import { MongoClient } from 'mongodb';
import { payloads } from './tally.mjs';

const AT_ONCE = 100;
const PROCESS_EVERY = 100;

export const settings = (concurrency) =>
  `processEvery ${PROCESS_EVERY} ms, maxConcurrency and defaultConcurrency ${concurrency}, no lockLimit; keeps finished jobs, its default`;

export async function clear(url) {
  const client = await MongoClient.connect(url);
  await client.db().dropDatabase();
  await client.close();
}

export async function enqueue(url, total) {
  const agenda = new Agenda({ backend: new MongoBackend({ address: url }) });
  await agenda.ready;
  // It has no bulk insert.
  for (const chunk of payloads(total, AT_ONCE)) {
    await Promise.all(chunk.map((data) => agenda.now('noop', data)));
  }
  await agenda.stop();
}

export async function work(url, concurrency, tally) {
  const agenda = new Agenda({
    backend: new MongoBackend({ address: url }),
    processEvery: PROCESS_EVERY,
    maxConcurrency: concurrency,
    defaultConcurrency: concurrency,
  });
  let stopping = false;
  agenda.define('noop', async ({ attrs }) => tally.started(attrs.data.index));
  agenda.on('complete', () => tally.completed());
  // While it stops, it closes the connection during one of its own queries.
  agenda.on('error', (error) => stopping || console.error(error));
  await agenda.start();
  await tally.whenCompleted();
  return () => {
    stopping = true;
    return agenda.stop();
  };
}

import type { TestDatabase } from './database.js';
import { waitUntil } from './wait-until.js';

interface OpenStream {
  cursorId: unknown;
  /** What it was opened with, as text. */
  command: string;
}

/** The change streams that the server has open on the whole of this database, read at the moment or not. */
export async function listChangeStreams(database: TestDatabase): Promise<OpenStream[]> {
  const admin = database.connection.getClient().db('admin');
  const found = await admin
    .aggregate([
      { $currentOp: { idleCursors: true, localOps: true } },
      { $match: { ns: `${database.connection.name}.$cmd.aggregate`, 'cursor.cursorId': { $exists: true } } },
    ])
    .toArray();
  return found.map(({ cursor }): OpenStream => {
    const { cursorId, originatingCommand } = cursor as { cursorId: unknown; originatingCommand: object };
    const command = JSON.stringify(originatingCommand);
    return { cursorId, command };
  });
}

/** Resolves when so many streams are open. */
export async function waitForChangeStreams(database: TestDatabase, count: number): Promise<void> {
  await waitUntil(
    `${count} streams are open`,
    async () => (await listChangeStreams(database)).length === count,
  );
}

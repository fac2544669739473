import type { TestDatabase } from './database.js';
import { waitUntil } from './wait-until.js';

interface OpenStream {
  cursorId: unknown;
  /** The command that opened it, as JSON. */
  command: string;
}

/**
 * The change streams on this whole database that the server has open, including idle ones. The server lists active
 * cursors first and idle ones then, so a stream that becomes active in between is missing.
 */
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

/** Resolves to the open change streams when there are exactly `count`. */
export async function waitForChangeStreams(database: TestDatabase, count: number): Promise<OpenStream[]> {
  let open: OpenStream[] = [];
  await waitUntil(`${count} change streams are open`, async () => {
    open = await listChangeStreams(database);
    return open.length === count;
  });
  return open;
}

import type { TestDatabase } from './database.js';
import { until } from './until.js';

interface OpenStream {
  cursorId: unknown;
  scope: 'all' | 'quietly';
  /** What it was opened with, as text. */
  command: string;
}

/** The change streams that the server has open on the whole of this database, read at the moment or not. */
export async function openStreams(database: TestDatabase): Promise<OpenStream[]> {
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
    return { cursorId, command, scope: command.includes('fullDocument.status') ? 'all' : 'quietly' };
  });
}

/** Resolves when there is one open stream, of that scope. */
export async function streamIs(database: TestDatabase, scope: OpenStream['scope']): Promise<void> {
  await until(`one stream is open, of scope ${scope}`, async () => {
    const streams = await openStreams(database);
    return streams.length === 1 && streams[0]?.scope === scope;
  });
}

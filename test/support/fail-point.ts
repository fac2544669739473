import type { CollectionName } from '../../src/store/schema/collections.js';
import { collectionName, type TestDatabase } from './database.js';

export interface FailPoint {
  /** Commands that fail. Only for connections of schedulers: those of the tests have another `appName`. */
  commands: readonly string[];
  /** Default: jobs. */
  collection?: CollectionName | typeof WHOLE_DATABASE;
  /** How many commands fail. Default: all until `work` has ended. */
  times?: number;
  /**
   * `lostReply`: the command takes effect, but the reply has a write concern error. `noConnection`: the connection
   * breaks before the command is executed. `error`: the server returns an error that is not transient. `tooSlow`: the
   * server returns that `maxTimeMS` was exceeded. `denied`: the user is not authorized. `conflict`: an index is being
   * built. A number: the server takes this many milliseconds longer.
   */
  how: 'lostReply' | 'noConnection' | 'error' | 'tooSlow' | 'denied' | 'conflict' | number;
}

const WHOLE_DATABASE = '$cmd.aggregate';

/** Change streams on the whole database cannot be opened. */
export const NO_STREAM = {
  commands: ['aggregate'],
  collection: WHOLE_DATABASE,
  how: 'error',
} as const satisfies FailPoint;

/** Makes the server fail while `work` runs. `entered()` resolves when the first command is affected. */
export async function withFailPoint<T>(
  database: TestDatabase,
  { commands, collection = 'jobs', times, how }: FailPoint,
  work: (entered: () => Promise<unknown>) => Promise<T>,
): Promise<T> {
  const name = collection === WHOLE_DATABASE ? collection : collectionName(collection);
  const namespace = `${database.connection.name}.${name}`;
  const { count } = (await database.admin({
    configureFailPoint: 'failCommand',
    mode: times === undefined ? 'alwaysOn' : { times },
    data: { failCommands: commands, appName: 'chronos', namespace, ...effectOf(how) },
  })) as { count: unknown };
  try {
    return await work(() =>
      database.admin({
        waitForFailPoint: 'failCommand',
        timesEntered: Number(count) + 1,
        maxTimeMS: 10_000,
      }),
    );
  } finally {
    await database.admin({ configureFailPoint: 'failCommand', mode: 'off' });
  }
}

/**
 * While `work` runs, reads with the read concern `majority` do not see new writes, as if no other member of the replica
 * set had them yet. Writes that wait for a majority wait until the end.
 */
export async function withoutMajorityReads<T>(database: TestDatabase, work: () => Promise<T>): Promise<T> {
  const failPoint = { configureFailPoint: 'disableSnapshotting' };
  await database.admin({ ...failPoint, mode: 'alwaysOn' });
  try {
    return await work();
  } finally {
    await database.admin({ ...failPoint, mode: 'off' });
  }
}

function effectOf(how: FailPoint['how']): object {
  switch (how) {
    case 'lostReply':
      return { writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } };
    case 'noConnection':
      return { closeConnection: true };
    case 'error':
      return { errorCode: 8000, errorLabels: [] };
    case 'tooSlow':
      return { errorCode: 50, errorLabels: [] };
    case 'conflict':
      return { errorCode: 12587, errorLabels: [] };
    case 'denied':
      return { errorCode: 13, errorLabels: [] };
    default:
      return { blockConnection: true, blockTimeMS: how };
  }
}

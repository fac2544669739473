import type { TestDatabase } from './database.js';

export interface FailPoint {
  /** Commands that fail, of the schedulers only: tests' own connections have another name. */
  commands: readonly string[];
  /** Only on this collection; default jobs. */
  collection?: string;
  /** How often; default until the work is over. */
  times?: number;
  /**
   * `lostReply`: the command takes effect, its reply says that it may not have. `noConnection`: the connection
   * breaks before the command is looked at. `refused`: the server answers with an error that waiting does not cure.
   * `tooSlow`: the command ends as if its `maxTimeMS` were over.
   * A number: the server takes this many milliseconds longer.
   */
  how: 'lostReply' | 'noConnection' | 'refused' | 'tooSlow' | number;
}

/** Change streams of the whole database are refused. */
export const NO_STREAM = {
  commands: ['aggregate'],
  collection: '$cmd.aggregate',
  how: 'refused',
} as const satisfies FailPoint;

/** Makes the server fail while `work` runs. */
export async function withFailPoint<T>(
  database: TestDatabase,
  { commands, collection = 'jobs', times, how }: FailPoint,
  work: () => Promise<T>,
): Promise<T> {
  const namespace = `${database.connection.name}.${collection}`;
  await database.admin({
    configureFailPoint: 'failCommand',
    mode: times === undefined ? 'alwaysOn' : { times },
    data: { failCommands: commands, appName: 'chronos', namespace, ...effectOf(how) },
  });
  try {
    return await work();
  } finally {
    await database.admin({ configureFailPoint: 'failCommand', mode: 'off' });
  }
}

function effectOf(how: FailPoint['how']): object {
  switch (how) {
    case 'lostReply':
      return { writeConcernError: { code: 64, errmsg: 'waiting for replication timed out' } };
    case 'noConnection':
      return { closeConnection: true };
    case 'refused':
      return { errorCode: 8000, errorLabels: [] };
    case 'tooSlow':
      return { errorCode: 50, errorLabels: [] };
    default:
      return { blockConnection: true, blockTimeMS: how };
  }
}

// Starts a real mongod as a replica set for development and tests; MongoDB need not be installed.
import { mkdir } from 'node:fs/promises';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { MongoMemoryReplSet, MongoMemoryServer } from 'mongodb-memory-server-core';
import { resetPortsCache } from 'mongodb-memory-server-core/lib/util/getport/index.js';

import { DATABASE, hostOf, SET_NAME, setUri, type Superuser } from './addresses.js';
import { DataFolder, isStillRunning } from './data-folder.js';
import { DataInUseError, EmbeddedMongodError } from './errors.js';
import { HELP_TEXT, type Log } from './find-binary.js';
import { firstFreePort, isFree } from './ports.js';
import { resume } from './processes.js';
import { moveReplicaSet, waitForMembers } from './replica-set.js';
import { MONGOD_ARGS, serverOptions, type ServerOptions } from './server-options.js';
import { createTemporaryFolder, removeFolder } from './temporary-folder.js';

export { DataInUseError, EmbeddedMongodError } from './errors.js';
export { findBinary, type Binary, type BinaryName } from './find-binary.js';
export { freeStablePort } from './ports.js';
export { startShardedCluster, type ShardedCluster } from './sharded-cluster.js';

export interface StartOptions {
  /** Keeps the data here from run to run; one member only. Default: a temporary folder, removed on stop. */
  dataPath?: string;
  /** Members of the replica set. Default 1. */
  members?: number;
  /** Default true. A standalone server has no change streams, no majority and no retryable writes. */
  replicaSet?: boolean;
  /** Milliseconds without a primary after which the members elect another. Default 3000; MongoDB's own default is 10,000. */
  electionTimeout?: number;
  /** Port of the first member. Default: that of the last run on `dataPath`, else a free one. */
  port?: number;
  /** Enables access control with this superuser; only for a replica set on temporary data. Default: no access control. */
  superuser?: Superuser;
  /** Called before steps that take long. */
  log?: Log;
}

export interface Member {
  /** `127.0.0.1:<port>` */
  host: string;
  /** Connects to this member alone. */
  uri: string;
  /** Process id of its mongod. */
  pid: number;
}

export interface EmbeddedMongod {
  uri: string;
  members: Member[];
  stop: () => Promise<void>;
}

interface InstanceOptions {
  dbPath: string;
  port?: number;
}

/** Error codes of a server that is still loading its configuration, or cannot reach itself yet (NodeNotFound). */
const STILL_STARTING: readonly unknown[] = [109, 74];
const MAX_ATTEMPTS = 10;
const RETRY_MS = 300;
/** Not MongoDB's default 27017, and below the ephemeral ports. */
const FIRST_STORED_PORT = 27117;
// The default election timeout is ten seconds, too long for tests of failover.
const QUICK_ELECTIONS = { electionTimeoutMillis: 3000, heartbeatIntervalMillis: 500 };

export async function startMongod(options: StartOptions = {}): Promise<EmbeddedMongod> {
  const { dataPath, members = 1, replicaSet = true, port, superuser, log = () => undefined } = options;
  const { electionTimeout } = options;
  if (process.env['NODE_ENV'] === 'production') {
    throw new EmbeddedMongodError('The embedded MongoDB is not for production: set MONGODB_URI.');
  }
  if (dataPath !== undefined && members !== 1) {
    throw new EmbeddedMongodError(`dataPath supports only one member, got ${members}.`);
  }
  if (superuser !== undefined && (dataPath !== undefined || !replicaSet)) {
    throw new EmbeddedMongodError('superuser is supported only for a replica set on temporary data.');
  }
  if (!replicaSet && (dataPath !== undefined || members !== 1)) {
    throw new EmbeddedMongodError('A standalone server supports neither dataPath nor several members.');
  }
  if (port !== undefined && !(await isFree(port))) {
    throw new EmbeddedMongodError(`Port ${port} is taken by another program.`);
  }
  const server = { ...(await serverOptions(log)), superuser, electionTimeout };
  try {
    if (dataPath !== undefined) return await startOnStoredData(server, dataPath, port);
    return await startOnTemporaryData(server, replicaSet ? members : 'standalone', port);
  } catch (error) {
    if (error instanceof EmbeddedMongodError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new EmbeddedMongodError(`MongoDB could not be started: ${reason}\n${HELP_TEXT}`, { cause: error });
  }
}

type Server = ServerOptions & { superuser: Superuser | undefined; electionTimeout: number | undefined };

async function startOnStoredData(
  server: Server,
  dataPath: string,
  wantedPort: number | undefined,
): Promise<EmbeddedMongod> {
  const folder = new DataFolder(dataPath);
  const lastRun = await folder.lastRun();
  if (lastRun && (await isStillRunning(lastRun))) {
    throw new DataInUseError(dataPath, setUri([hostOf(lastRun.port)]));
  }
  const lastPort = lastRun && (await isFree(lastRun.port)) ? lastRun.port : undefined;
  const port = wantedPort ?? lastPort ?? (await firstFreePort(FIRST_STORED_PORT));
  const instance = { port, dbPath: folder.databasePath };

  await folder.create();
  if (lastRun && lastRun.port !== port) {
    const mongod = { ...instance, ip: '127.0.0.1', replSet: SET_NAME, args: MONGOD_ARGS };
    await moveReplicaSet({ ...server, instance: mongod }, hostOf(port));
  }
  // Save the port before the start as well: the replica set needs the same port again even if this process dies now.
  await folder.saveLastRun({ port, pid: process.pid, ownerPid: process.pid });
  const started = await startReplicaSet(server, [instance]);
  await folder.saveLastRun({ port, pid: started.members[0]?.pid ?? process.pid, ownerPid: process.pid });
  return started;
}

async function startOnTemporaryData(
  server: Server,
  members: number | 'standalone',
  wantedPort: number | undefined,
): Promise<EmbeddedMongod> {
  const folder = await createTemporaryFolder();
  try {
    const instances: InstanceOptions[] = [];
    for (let index = 0; index < (members === 'standalone' ? 1 : members); index += 1) {
      const dbPath = path.join(folder, String(index));
      await mkdir(dbPath);
      instances.push({ dbPath, ...(index === 0 && wantedPort !== undefined && { port: wantedPort }) });
    }
    const started = await (members === 'standalone' ? startStandalone : startReplicaSet)(server, instances);
    const stop = async () => {
      await started.stop();
      await removeFolder(folder);
    };
    return { ...started, stop };
  } catch (error) {
    await removeFolder(folder);
    throw error;
  }
}

/**
 * On existing data the set is reconfigured, which a server may refuse for a moment after its start. The library does not
 * use a port again that it used within the last ten seconds, but takes any other one, silently: the member could then not
 * find itself in its set. So the library has to forget the ports before every start.
 */
async function createReplicaSet(
  options: Parameters<typeof MongoMemoryReplSet.create>[0],
): Promise<MongoMemoryReplSet> {
  for (let tries = 1; ; tries += 1) {
    resetPortsCache();
    try {
      return await MongoMemoryReplSet.create(options);
    } catch (error) {
      if (!STILL_STARTING.includes((error as { code?: unknown }).code) || tries === MAX_ATTEMPTS) throw error;
      await pause(RETRY_MS);
    }
  }
}

async function startReplicaSet(server: Server, instances: InstanceOptions[]): Promise<EmbeddedMongod> {
  const { superuser } = server;
  const replicaSet = await createReplicaSet({
    binary: server.binary,
    instanceOpts: instances.map((instance) => ({ ...instance, launchTimeout: 60_000 })),
    replSet: {
      name: SET_NAME,
      count: instances.length,
      storageEngine: 'wiredTiger',
      args: MONGOD_ARGS,
      spawn: server.spawn,
      configSettings:
        server.electionTimeout === undefined
          ? QUICK_ELECTIONS
          : { electionTimeoutMillis: server.electionTimeout },
      ...(superuser && {
        auth: { enable: true, customRootName: superuser.name, customRootPwd: superuser.password },
      }),
    },
  });
  const members = replicaSet.servers.map(({ instanceInfo }): Member => {
    const pid = instanceInfo?.instance.mongodProcess?.pid;
    if (!instanceInfo || pid === undefined)
      throw new EmbeddedMongodError('A mongod exited while it was starting.');
    const host = hostOf(instanceInfo.port);
    return { host, uri: `mongodb://${host}/${DATABASE}?directConnection=true`, pid };
  });
  const uri = setUri(
    members.map((member) => member.host),
    superuser,
  );
  await waitForMembers(uri);
  return {
    uri,
    members,
    stop: async () => {
      for (const { pid } of members) resume(pid);
      // Shutting down a member that was killed would take ten seconds.
      const alive = replicaSet.servers.filter(({ instanceInfo }) =>
        isRunning(instanceInfo?.instance.mongodProcess),
      );
      await Promise.all(alive.map((member) => member.stop({ doCleanup: false })));
    },
  };
}

async function startStandalone(server: Server, [instance]: InstanceOptions[]): Promise<EmbeddedMongod> {
  const mongod = await MongoMemoryServer.create({
    binary: server.binary,
    instance: { ...instance, storageEngine: 'wiredTiger', args: MONGOD_ARGS, launchTimeout: 60_000 },
    spawn: server.spawn,
  });
  const pid = mongod.instanceInfo?.instance.mongodProcess?.pid;
  if (!mongod.instanceInfo || pid === undefined)
    throw new EmbeddedMongodError('A mongod exited while it was starting.');
  const host = hostOf(mongod.instanceInfo.port);
  const uri = `mongodb://${host}/${DATABASE}`;
  return {
    uri,
    members: [{ host, uri: `${uri}?directConnection=true`, pid }],
    stop: async () => {
      resume(pid);
      await mongod.stop({ doCleanup: false });
    },
  };
}

function isRunning(child: ChildProcess | undefined): boolean {
  return child?.exitCode === null && child.signalCode === null;
}

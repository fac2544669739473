import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { MongoClient } from 'mongodb';
import { MongoMemoryServer } from 'mongodb-memory-server-core';

import { DATABASE, hostOf } from './addresses.js';
import { EmbeddedMongodError } from './errors.js';
import { type Binary, findBinary, HELP_TEXT, type Log } from './find-binary.js';
import { freePort } from './ports.js';
import { resume } from './processes.js';
import { initiateReplicaSet } from './replica-set.js';
import { MONGOD_ARGS, SERVER_ARGS, serverOptions, type ServerOptions } from './server-options.js';
import { createTemporaryFolder, removeFolder } from './temporary-folder.js';

export interface ShardedClusterOptions {
  /** Default 2. */
  shards?: number;
  /** Called before steps that take long. */
  log?: Log;
}

export interface Shard {
  /** The name of the shard and of its replica set, which has one member. */
  name: string;
  /** Connects to its mongod alone. */
  uri: string;
  /** Process id of its mongod. */
  pid: number;
}

export interface ShardedCluster {
  /** Connects to mongos. */
  uri: string;
  shards: Shard[];
  stop: () => Promise<void>;
}

const CONFIG_SET = 'config';
const MAX_START_MS = 60_000;

/** Starts a config server, shards and one mongos on temporary data. Databases on it are not sharded yet. */
export async function startShardedCluster(options: ShardedClusterOptions = {}): Promise<ShardedCluster> {
  const { shards: count = 2, log = () => undefined } = options;
  const mongos = await findBinary('mongos', log);
  if (mongos === undefined)
    throw new EmbeddedMongodError(`No mongos found: set MONGOS_BINARY to the path of one.\n${HELP_TEXT}`);
  const server = await serverOptions(log);
  const folder = await createTemporaryFolder();
  const started: { stop: () => Promise<unknown> }[] = [];
  const stop = async (): Promise<void> => {
    // mongos first: it reports errors of the servers behind it.
    for (const { stop: stopOne } of started.toReversed()) await stopOne();
    await removeFolder(folder);
  };
  const start = async (role: 'configsvr' | 'shardsvr', name: string): Promise<Shard> => {
    const dbPath = path.join(folder, name);
    await mkdir(dbPath);
    const { shard, mongod } = await startMember(server, dbPath, role, name);
    started.push({
      stop: async () => {
        resume(shard.pid);
        await mongod.stop({ doCleanup: false });
      },
    });
    return shard;
  };
  try {
    const names = Array.from({ length: count }, (_, index) => `shard${index}`);
    const starting = [
      start('configsvr', CONFIG_SET),
      ...names.map((name) => start('shardsvr', name)),
    ] as const;
    // If one fails, the others are stopped after they have started.
    await Promise.allSettled(starting);
    const [config, ...shards] = await Promise.all(starting);
    const port = await freePort();
    const router = await startMongos(mongos, port, `${CONFIG_SET}/${new URL(config.uri).host}`);
    started.push(router);
    const uri = `mongodb://${hostOf(port)}/${DATABASE}`;
    await addShards(uri, shards);
    return { uri, shards, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startMember(
  server: ServerOptions,
  dbPath: string,
  role: 'configsvr' | 'shardsvr',
  name: string,
): Promise<{ shard: Shard; mongod: MongoMemoryServer }> {
  const mongod = await MongoMemoryServer.create({
    ...server,
    instance: {
      ...{ dbPath, replSet: name, storageEngine: 'wiredTiger', launchTimeout: MAX_START_MS },
      args: [...MONGOD_ARGS, `--${role}`],
    },
  });
  const { port = 0, instance } = mongod.instanceInfo ?? {};
  const pid = instance?.mongodProcess?.pid;
  if (pid === undefined) throw new EmbeddedMongodError('A mongod exited while it was starting.');
  const uri = `mongodb://${hostOf(port)}/${DATABASE}?directConnection=true`;
  try {
    await initiateReplicaSet(uri, {
      _id: name,
      members: [{ _id: 0, host: hostOf(port) }],
      ...(role === 'configsvr' && { configsvr: true }),
    });
  } catch (error) {
    await mongod.stop({ doCleanup: false });
    throw error;
  }
  return { shard: { name, uri, pid }, mongod };
}

async function startMongos(
  { path: file, env }: Binary,
  port: number,
  configDatabase: string,
): Promise<{ stop: () => Promise<void> }> {
  const args = ['--configdb', configDatabase, '--port', String(port), '--bind_ip', '127.0.0.1'];
  const mongos = spawn(file, [...args, ...SERVER_ARGS], {
    ...{ env: { ...process.env, ...env }, detached: true, stdio: ['ignore', 'pipe', 'ignore'] },
  });
  const exited = once(mongos, 'exit');
  const watchdog = startWatchdog(mongos);
  const stop = async (): Promise<void> => {
    // It keeps no data, and a shutdown waits for its clients.
    mongos.kill('SIGKILL');
    watchdog.kill('SIGKILL');
    await exited;
  };
  mongos.unref();
  try {
    await untilReady(mongos, exited);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

/** Ends mongos if this process dies, as mongodb-memory-server does it for each mongod. */
function startWatchdog({ pid }: ChildProcess): ChildProcess {
  const script = createRequire(import.meta.url).resolve('mongodb-memory-server-core/scripts/mongo_killer.js');
  const watchdog = fork(script, [String(process.pid), String(pid)], {
    ...{ execArgv: [], detached: true, stdio: 'ignore' },
  });
  watchdog.unref();
  return watchdog;
}

async function untilReady(mongos: ChildProcess, exited: Promise<unknown[]>): Promise<void> {
  const { stdout } = mongos;
  if (stdout === null) throw new EmbeddedMongodError('The output of mongos cannot be read.');
  const isListening = new Promise<void>((resolve) => {
    createInterface(stdout).on('line', (line) => {
      if (line.includes('Waiting for connections')) resolve();
    });
  });
  const failed = exited.then(([code]) => {
    throw new EmbeddedMongodError(`mongos exited with ${String(code)} while it was starting.`);
  });
  failed.catch(() => undefined);
  await Promise.race([isListening, failed]);
}

async function addShards(uri: string, shards: readonly Shard[]): Promise<void> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: MAX_START_MS });
  try {
    for (const { name, uri: member } of shards)
      await client.db('admin').command({ addShard: `${name}/${new URL(member).host}`, name });
  } finally {
    await client.close();
  }
}

import { setTimeout as sleep } from 'node:timers/promises';

import { MongoClient, MongoServerError, type Db } from 'mongodb';
import { MongoInstance } from 'mongodb-memory-server-core';

type MongodOptions = Parameters<(typeof MongoInstance)['create']>[0];

interface Configuration {
  version: number;
  members: { host: string }[];
}

/**
 * Changes the port of the only member of a stored replica set. Otherwise it does not
 * find itself in its configuration and refuses to become primary.
 */
export async function moveReplicaSet(options: MongodOptions, host: string): Promise<void> {
  const mongod = await MongoInstance.create(options);
  try {
    await withAdmin(`mongodb://${host}/?directConnection=true`, async (admin) => {
      const config = await storedConfiguration(admin);
      const members = config.members.map((member) => ({ ...member, host }));
      await admin.command({
        replSetReconfig: { ...config, version: config.version + 1, members },
        force: true,
      });
    });
  } finally {
    await mongod.stop();
  }
}

/** A mongod accepts commands before it has read its configuration. */
async function storedConfiguration(admin: Db): Promise<Configuration> {
  for (;;) {
    try {
      const reply = await admin.command({ replSetGetConfig: 1 });
      return reply['config'] as Configuration;
    } catch (error) {
      if (!(error instanceof MongoServerError) || error.codeName !== 'NotYetInitialized') throw error;
      await sleep(50);
    }
  }
}

/** Makes a mongod that has no data yet the first member of a replica set, and waits until it is the primary. */
export async function initiateReplicaSet(uri: string, config: object): Promise<void> {
  await withAdmin(uri, async (admin) => {
    await admin.command({ replSetInitiate: config });
    while ((await admin.command({ hello: 1 }))['isWritablePrimary'] !== true) await sleep(20);
  });
}

/** A secondary that still copies the data can neither acknowledge a majority write nor be elected. */
export async function waitForMembers(uri: string): Promise<void> {
  await withAdmin(uri, async (admin) => {
    while (!(await allReady(admin))) await sleep(50);
  });
}

async function allReady(admin: Db): Promise<boolean> {
  const status = await admin.command({ replSetGetStatus: 1 });
  const members = status['members'] as { stateStr: string }[];
  return members.every(({ stateStr }) => stateStr === 'PRIMARY' || stateStr === 'SECONDARY');
}

async function withAdmin(uri: string, work: (admin: Db) => Promise<void>): Promise<void> {
  const client = await MongoClient.connect(uri, { serverSelectionTimeoutMS: 10_000 });
  try {
    await work(client.db('admin'));
  } finally {
    await client.close();
  }
}

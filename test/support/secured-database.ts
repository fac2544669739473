import { readFileSync } from 'node:fs';
import mongoose, { type Connection } from 'mongoose';
import { startMongod } from '@chronos/mongod';

interface Privilege {
  resource: { db: string; collection: string };
  actions: string[];
}

/** The roles that docs/operations.md tells people to create. */
export const ROLES = JSON.parse(
  readFileSync(new URL('../../deploy/mongodb/roles.json', import.meta.url), 'utf8'),
) as Record<string, Privilege[]>;

const SUPERUSER = { name: 'root', password: 'p@ss w/ord' };

/** A separate replica set with access control. */
export class SecuredDatabase {
  private constructor(
    readonly superuser: Connection,
    readonly stop: () => Promise<void>,
    readonly uri: string,
  ) {}

  static async start(): Promise<SecuredDatabase> {
    const mongod = await startMongod({ superuser: SUPERUSER });
    const superuser = await mongoose.createConnection(mongod.uri).asPromise();
    const stop = async (): Promise<void> => {
      await superuser.destroy();
      await mongod.stop();
    };
    return new SecuredDatabase(superuser, stop, mongod.uri);
  }

  /** The connection string of a new user with exactly these privileges. */
  async addUser(name: string, privileges: readonly Privilege[]): Promise<string> {
    const admin = this.superuser.getClient().db('admin');
    const pwd = `${name}-password`;
    await admin.command({ createRole: name, privileges, roles: [] });
    await admin.command({ createUser: name, pwd, roles: [name] });
    const uri = new URL(this.uri);
    [uri.username, uri.password] = [name, pwd];
    return uri.href;
  }

  /** Turns on the profiler for writes. */
  async recordWrites(): Promise<void> {
    await this.superuser.createCollection('system.profile', { capped: true, size: 64 * 1024 * 1024 });
    const filter = { op: { $in: ['insert', 'update', 'remove', 'command'] } };
    await this.superuser.db?.command({ profile: 1, filter });
  }

  /** The writes of a user since `recordWrites`, as `collection: action`, sorted. */
  async writesOf(name: string): Promise<string[]> {
    const entries = await this.superuser
      .collection<ProfileEntry>('system.profile')
      .find({ user: `${name}@admin`, errMsg: { $exists: false } })
      .toArray();
    return [...new Set(entries.flatMap(actionsOf))].sort();
  }
}

interface ProfileEntry {
  op: 'insert' | 'update' | 'remove' | 'command';
  ns: string;
  command: { findAndModify?: string; upsert?: boolean };
}

function actionsOf({ op, ns, command }: ProfileEntry): string[] {
  if (op === 'command' && command.findAndModify === undefined) return [];
  const collection = ns.slice(ns.indexOf('.') + 1);
  const actions = [op === 'command' ? 'update' : op, ...(command.upsert === true ? ['insert'] : [])];
  return actions.map((action) => `${collection}: ${action}`);
}

import type { mongo } from 'mongoose';

/** The connections of this process, except those of the thread that renews locks. */
export interface PoolUse {
  open: number;
  inUse: number;
  /** Operations that wait for a connection. */
  waiting: number;
  /** As many as there may be to each server. */
  most: number;
}

/** Follows what the driver tells of its pools; all servers together. */
export function watchPool(client: mongo.MongoClient): () => PoolUse {
  const open = new Set<string>();
  const inUse = new Set<string>();
  let waiting = 0;
  const key = ({ address, connectionId }: { address: string; connectionId: unknown }): string =>
    `${address}/${String(connectionId)}`;
  client.on('connectionCreated', (event) => void open.add(key(event)));
  client.on('connectionClosed', (event) => {
    open.delete(key(event));
    inUse.delete(key(event));
  });
  client.on('connectionCheckOutStarted', () => waiting++);
  client.on('connectionCheckOutFailed', () => waiting--);
  client.on('connectionCheckedOut', (event) => {
    waiting--;
    // One that was made before anybody listened is heard of here.
    open.add(key(event));
    inUse.add(key(event));
  });
  client.on('connectionCheckedIn', (event) => void inUse.delete(key(event)));
  return () => ({
    open: open.size,
    inUse: inUse.size,
    waiting: Math.max(0, waiting),
    most: client.options.maxPoolSize,
  });
}

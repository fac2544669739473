import { mongo } from 'mongoose';

/** The size of the stored value in bytes. */
export function bsonSize(value: unknown): number {
  return mongo.BSON.calculateObjectSize({ value });
}

/** Ids of one process sort by creation. */
export function newJobId(): string {
  return new mongo.ObjectId().toHexString();
}

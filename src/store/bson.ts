import { mongo } from 'mongoose';

/** Bytes the value takes when stored. */
export function bsonSize(value: unknown): number {
  return mongo.BSON.calculateObjectSize({ value });
}

/** Ordered by creation within a process, unique across all. */
export function newJobId(): string {
  return new mongo.ObjectId().toHexString();
}

import { mongo } from 'mongoose';

/** The number of bytes the value takes when stored. */
export function bsonSize(value: unknown): number {
  return mongo.BSON.calculateObjectSize({ value });
}

/** Unique. Ids of one process sort by creation. */
export function newJobId(): string {
  return new mongo.ObjectId().toHexString();
}

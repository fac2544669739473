import { mongo } from 'mongoose';
import { START } from './instants.js';

export const MAX_LONG = mongo.Long.MAX_VALUE;

/**
 * Stored as an object that looks like a value of the driver, as programs do that serialize their ids. A Map, because the
 * driver refuses to write such an object.
 */
export function driverLike(type: string): Map<string, unknown> {
  return new Map(Object.entries({ _bsontype: type, toString: 'x', toHexString: 'x' }));
}

/** One field of a due job. Each may be inserted by the role of dispatchers, or on a server without the validators. */
export const DUE: Record<string, mongo.Document> = {
  'a first start that is text, with maxRunningTime': { maxRunningTime: 1000, firstStartedAt: 'yesterday' },
  'the largest fence': { fence: MAX_LONG },
  'a fence that is null': { fence: null },
  'a fence that is text': { fence: '1' },
  'a priority that is text': { priority: 'high' },
  'a priority above 1000': { priority: 5000 },
  'no priority': { priority: undefined },
  'attempts that are no number': { attempts: NaN },
  'negative attempts': { attempts: -1 },
  'crashes that are null': { crashes: null },
  'a number of attempts that is text': { retries: { max: 'x' } },
  'a negative delay': { retries: { max: 3, base: -1 } },
  'a timeout that is text': { timeout: '1s' },
  'tags that are no list': { tags: 'a' },
  'an expiry that is text': { expiresAt: 'soon' },
  'a retention that is text': { retention: { completed: '1d' } },
  'a trace that is a number': { trace: 5 },
  'progress that is a number': { progress: 5 },
  'a user that is a number': { userId: 42 },
  'a number as id': { _id: 7 },
  'hex digits as id': { _id: 'a'.repeat(24) },
  'an id that looks like an ObjectId': { _id: driverLike('ObjectId') },
  'a fence that looks like a Long': { fence: driverLike('Long') },
};

/** A lock of a worker that is gone. */
export const LOCKED = { lockedBy: 'gone', lockToken: 't', fence: 1, queuedAt: START, startedAt: START };

/** One field of a job whose lock has expired. */
export const EXPIRED: Record<string, mongo.Document> = {
  'crashes that are null': { crashes: null },
  'a lost count that is text': { status: 'QUEUED', lostWhileQueued: 'x' },
  'the largest fence': { fence: MAX_LONG },
  'a first start that is text': { firstStartedAt: 'x', maxRunningTime: 5 },
  'a lock token that is a number': { lockToken: 5 },
  'a lock token that looks like an ObjectId': { lockToken: driverLike('ObjectId') },
  'a time of expiry that is text': { lockedUntil: 'later', attempts: 'x' },
};

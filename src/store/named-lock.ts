import type { LockDocument } from './documents.js';
import { isDuplicateKey } from './faults.js';
import type { LockGrant } from './lock-fields.js';
import type { Collections } from './models.js';

/** Takes the lock when it is free; null when somebody holds it. The fence rises with every holder. */
export async function acquireLock(
  c: Collections,
  name: string,
  grant: LockGrant,
  now: Date,
): Promise<LockDocument | null> {
  try {
    return await c.locks.findOneAndUpdate(
      { _id: name, lockedUntil: { $lte: now } },
      {
        $set: { lockToken: grant.token, lockedBy: grant.workerId, lockedUntil: grant.lockedUntil },
        $inc: { fence: 1 },
      },
      { upsert: true, returnDocument: 'after' },
    );
  } catch (error) {
    // Held: the filter did not match, and the insert that followed found the document there.
    if (isDuplicateKey(error)) return null;
    throw error;
  }
}

/** Only its holder releases a lock. False when it was lost before. */
export async function releaseLock(c: Collections, name: string, token: string): Promise<boolean> {
  const { matchedCount } = await c.locks.updateOne(
    { _id: name, lockToken: token },
    { $set: { lockToken: null, lockedBy: null, lockedUntil: new Date(0) } },
  );
  return matchedCount === 1;
}

export async function findLock(c: Collections, name: string): Promise<LockDocument | null> {
  return c.locks.findOne({ _id: name });
}

/** What ownership consists of; every write that ends it clears all three. */
export const NO_LOCK = { lockedBy: null, lockedUntil: null, lockToken: null } as const;

/** What a claim command writes into the jobs it takes. The token is a UUID never used again. */
export interface LockGrant {
  token: string;
  workerId: string;
  lockedUntil: Date;
}

import { createHash, timingSafeEqual } from 'node:crypto';

/** What somebody may do. Whoever may operate may read as well. */
export type Role = 'read' | 'operate';

/** Who asks, as it is written into the audit collection: never the token itself. */
export interface Identity {
  role: Role;
  who: string;
}

interface Known extends Identity {
  digest: Buffer;
}

const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i;
const FINGERPRINT = 8;

/** Tells by the token in a request what whoever sent it may do. */
export class Tokens {
  readonly #known: readonly Known[];

  constructor(token: string | undefined, readToken: string | undefined) {
    this.#known = [...known('operate', token), ...known('read', readToken)];
  }

  /** Whether anybody may do this at all. */
  allows(role: Role): boolean {
    return role === 'read' || this.#known.some((one) => one.role === role);
  }

  /** Undefined: nobody we know. Without any token everybody may read; the address is this machine's own then. */
  identify(authorization: string | undefined): Identity | undefined {
    if (authorization === undefined)
      return this.#known.length === 0 ? { role: 'read', who: 'read:anybody' } : undefined;
    const given = digestOf(BEARER.exec(authorization)?.[1] ?? '');
    // All are compared, and digests of one length: how long it takes tells nothing.
    const matching = this.#known.filter(({ digest }) => timingSafeEqual(digest, given));
    const [found] = matching;
    return found === undefined ? undefined : { role: found.role, who: found.who };
  }
}

function known(role: Role, token: string | undefined): Known[] {
  if (token === undefined) return [];
  const digest = digestOf(token);
  return [{ role, digest, who: `${role}:${digest.toString('hex').slice(0, FINGERPRINT)}` }];
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

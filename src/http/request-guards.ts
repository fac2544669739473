import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, onRequestHookHandler } from 'fastify';
import { isLoopback } from '../config/http-options.js';
import type { Connections } from './connections.js';
import { HttpProblem } from './problem.js';

/** `operate` includes `read`. */
export type Role = 'read' | 'operate';

/** The sender of a request. `who` is stored in the audit collection and never contains the token. */
export interface Identity {
  role: Role;
  who: string;
}

interface KnownToken extends Identity {
  digest: Buffer;
}

const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i;
const FINGERPRINT_LENGTH = 8;

/** The configured tokens. */
export class Tokens {
  readonly #known: readonly KnownToken[];

  constructor(token: string | undefined, readToken: string | undefined) {
    this.#known = [...knownToken('operate', token), ...knownToken('read', readToken)];
  }

  /** False if no token has this role. */
  allows(role: Role): boolean {
    return role === 'read' || this.#known.some((known) => known.role === role);
  }

  /** Undefined for an unknown token. Without configured tokens, every request may read: only this machine can connect. */
  identify(authorization: string | undefined): Identity | undefined {
    if (authorization === undefined)
      return this.#known.length === 0 ? { role: 'read', who: 'read:anybody' } : undefined;
    const digest = digestOf(BEARER.exec(authorization)?.[1] ?? '');
    // Constant time: compares with every token, and digests have equal length.
    const [found] = this.#known.filter((known) => timingSafeEqual(known.digest, digest));
    return found === undefined ? undefined : { role: found.role, who: found.who };
  }
}

function knownToken(role: Role, token: string | undefined): KnownToken[] {
  if (token === undefined) return [];
  const digest = digestOf(token);
  return [{ role, digest, who: `${role}:${digest.toString('hex').slice(0, FINGERPRINT_LENGTH)}` }];
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** What decides whether a request is served. */
export interface Access {
  tokens: Tokens;
  connections: Connections;
}

/** Route options that reject requests without this role before their body is read. */
export function requireRole(access: Access, role: Role): { onRequest: onRequestHookHandler } {
  return {
    onRequest: (_request, reply, done) => {
      authorize(access, role, reply);
      done();
    },
  };
}

/** Returns the sender of the request. Throws if their token does not have this role. */
export function authorize({ tokens, connections }: Access, role: Role, reply: FastifyReply): Identity {
  const identity = tokens.identify(reply.request.headers.authorization);
  if (identity === undefined) {
    throw new HttpProblem(
      401,
      'UNAUTHORIZED',
      'missing or unknown token: send authorization: Bearer <token>',
    );
  }
  if (!tokens.allows(role)) {
    throw new HttpProblem(403, 'CHANGES_OFF', 'changes are disabled: this worker has no HTTP_TOKEN');
  }
  if (role === 'operate' && identity.role !== 'operate') {
    throw new HttpProblem(403, 'FORBIDDEN', 'this token is read-only: changes need the token in HTTP_TOKEN');
  }
  connections.admit(reply);
  return identity;
}

/** Responses are for programs: browsers must not render, frame, sniff or cache them. */
const HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const;

export function addSecurityHeaders(reply: FastifyReply): void {
  reply.headers(HEADERS);
}

/**
 * Prevents DNS rebinding: a web page can reach a server on loopback by pointing its own host name to 127.0.0.1, but the
 * host header of its requests contains that name.
 */
export function assertLoopbackHost(host: string | undefined): void {
  const name = /^(\[[^\]]*\]|[^:]*)(:\d+)?$/.exec(host ?? '')?.[1] ?? '';
  if (isLoopback(name.replace(/^\[(.*)\]$/, '$1'))) return;
  throw new HttpProblem(
    421,
    'WRONG_HOST',
    'this server accepts only the hosts localhost, 127.0.0.1 and [::1]: use one of them, or set HTTP_HOST and HTTP_TOKEN to serve other machines',
  );
}

/** Node uses the first of several; a proxy in front may have used another. */
export function assertOneHost(hosts: readonly string[] | undefined): void {
  if (hosts === undefined || hosts.length < 2) return;
  throw new HttpProblem(
    400,
    'INVALID_REQUEST',
    `the request has ${hosts.length} host headers, expected one: send only one`,
  );
}

/** An absolute URL in the request line, as proxies get it, would bypass the check of the host header. */
export function assertPath(url: string | undefined): void {
  if (url?.startsWith('/') === true) return;
  throw new HttpProblem(
    400,
    'INVALID_REQUEST',
    'the request target must be a path that starts with /: this server is not a proxy',
  );
}

/** Prevents cross-site requests: browsers send JSON to another site only after a preflight, which fails here. */
export function assertContentType(contentType: string | undefined): void {
  if (/^application\/json *(;|$)/i.test(contentType ?? '')) return;
  throw new HttpProblem(
    415,
    'NOT_JSON',
    'changes need the header content-type: application/json, even without a body',
  );
}

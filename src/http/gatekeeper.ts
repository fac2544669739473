import type { FastifyReply, FastifyRequest } from 'fastify';
import { isLoopback } from '../config/http-options.js';
import { HttpProblem } from './problem.js';
import type { Identity, Role, Tokens } from './tokens.js';

/** Answers are for programs: a browser shows, frames, guesses and keeps none of them. */
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
 * Where only this machine can connect, a page in somebody's browser still can, under a name of its own that it made
 * lead here. Such a request says that name.
 */
export function checkHost(host: string | undefined): void {
  const name = /^(\[[^\]]*\]|[^:]*)(:\d+)?$/.exec(host ?? '')?.[1] ?? '';
  if (isLoopback(name.replace(/^\[(.*)\]$/, '$1'))) return;
  throw new HttpProblem(
    421,
    'WRONG_HOST',
    'this server only answers as localhost, 127.0.0.1 or [::1]: ask for it under one of these names, or set HTTP_HOST and HTTP_TOKEN to open it to others',
  );
}

/** Requests to a proxy name a host of their own in the first line; here that could only be meant to get around the check. */
export function checkTarget(url: string | undefined): void {
  if (url?.startsWith('/') === true) return;
  throw new HttpProblem(400, 'INVALID_REQUEST', 'this is no proxy: ask for a path');
}

/** No form and no page of another site can send this without being asked first, and nobody answers that question. */
export function checkContentType(contentType: string | undefined): void {
  if (/^application\/json *(;|$)/i.test(contentType ?? '')) return;
  throw new HttpProblem(
    415,
    'NOT_JSON',
    'a change needs the header content-type: application/json, also without a body',
  );
}

/** Whoever asks, once it is clear that they may. */
export function checkRights(tokens: Tokens, role: Role, request: FastifyRequest): Identity {
  const identity = tokens.identify(request.headers.authorization);
  if (identity === undefined) {
    throw new HttpProblem(
      401,
      'UNAUTHORIZED',
      'send a token that this worker knows: authorization: Bearer …',
    );
  }
  if (!tokens.allows(role)) {
    throw new HttpProblem(403, 'CHANGES_OFF', 'nothing can be changed here: this worker has no HTTP_TOKEN');
  }
  if (role === 'operate' && identity.role !== 'operate') {
    throw new HttpProblem(403, 'FORBIDDEN', 'this token may only read: changes need the one of HTTP_TOKEN');
  }
  return identity;
}

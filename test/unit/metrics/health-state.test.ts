import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { ChronosError } from '../../../src/domain/errors.js';
import type { Operation } from '../../../src/domain/events.js';
import { errorKind, type ErrorKind } from '../../../src/metrics/health-state.js';

const named = (name: string, message = 'boom'): Error => Object.assign(new Error(message), { name });

const CASES: [ErrorKind, Operation, Error][] = [
  ['connection', 'connect', new Error('whatever')],
  ['connection', 'settle', new mongo.MongoNetworkError('socket closed')],
  ['connection', 'enqueue schedules', named('MongoServerSelectionError')],
  ['connection', 'claim jobs', named('MongoWaitQueueTimeoutError')],
  ['connection', 'claim jobs', new mongo.MongoServerError({ message: 'not primary', code: 10_107 })],
  ['connection', 'insert job', new mongo.MongoNetworkError('socket closed')],
  ['connection', 'renew locks', new Error('connect ECONNREFUSED 127.0.0.1:1')],
  ['connection', 'renew locks', new ChronosError('MONGODB_UNREACHABLE', 'no server available')],
  ['connection', 'heartbeat', new Error('failed', { cause: named('MongoNetworkTimeoutError') })],
  ['lock', 'renew locks', new Error('the renewal thread ended unexpectedly')],
  ['lock', 'release named lock', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['push', 'insert job', new Error('rejected by the server')],
  ['cron', 'plan schedule', new RangeError('Invalid time zone')],
  ['other', 'plan schedule', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['decode', 'claim jobs', named('BSONError')],
  ['other', 'prune', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['other', 'sweep', new Error('boom')],
];

describe('errorKind', () => {
  for (const [kind, operation, error] of CASES) {
    it(`is ${kind} for ${error.name} '${error.message}' of the operation '${operation}' [F6]`, () => {
      assert.equal(errorKind(operation, error), kind);
    });
  }
});

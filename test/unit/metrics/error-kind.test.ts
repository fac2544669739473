import assert from 'node:assert/strict';
import { mongo } from 'mongoose';
import { ChronosError } from '../../../src/domain/errors.js';
import { errorKind, type ErrorKind } from '../../../src/metrics/error-kind.js';

const named = (name: string, message = 'boom'): Error => Object.assign(new Error(message), { name });

const CASES: [ErrorKind, string, Error][] = [
  ['connection', 'reach MongoDB', new Error('whatever')],
  ['connection', 'settle', new mongo.MongoNetworkError('socket closed')],
  ['connection', 'materialise schedules', named('MongoServerSelectionError')],
  ['connection', 'claim jobs', named('MongoWaitQueueTimeoutError')],
  ['connection', 'claim jobs', new mongo.MongoServerError({ message: 'not primary', code: 10_107 })],
  ['connection', 'insert a@b', new mongo.MongoNetworkError('socket closed')],
  ['connection', 'renew locks', new Error('connect ECONNREFUSED 127.0.0.1:1')],
  ['connection', 'renew locks', new ChronosError('MONGODB_UNREACHABLE', 'nobody there')],
  ['connection', 'heartbeat', new Error('failed', { cause: named('MongoNetworkTimeoutError') })],
  ['lock', 'renew locks', new Error('the renewal thread ended unexpectedly')],
  ['lock', 'release a lock', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['push', 'insert nightly@2026-01-01', new Error('refused by the server')],
  ['cron', 'decide on nightly', new RangeError('Invalid time zone')],
  ['other', 'decide on nightly', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['decode', 'claim jobs', named('BSONError')],
  ['other', 'prune', new mongo.MongoServerError({ message: 'not allowed', code: 13 })],
  ['other', 'a connection to nowhere', new Error('boom')],
];

describe('errorKind', () => {
  for (const [kind, operation, error] of CASES) {
    it(`F6 ${operation}: ${error.name} '${error.message}' is of the kind ${kind}`, () => {
      assert.equal(errorKind(operation, error), kind);
    });
  }
});

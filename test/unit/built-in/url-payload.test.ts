import assert from 'node:assert/strict';
import { readUrlPayload } from '../../../src/built-in/url-payload.js';

const url = 'https://example.com/';
const refuses = (payload: unknown, message: RegExp): void =>
  assert.throws(() => readUrlPayload(payload), { code: 'INVALID_PAYLOAD', message });

describe('D2 the payload of a url job', () => {
  it('is a URL, which is asked for with GET', () => {
    assert.deepEqual(readUrlPayload('https://example.com/a?b=c#d'), {
      url: new URL('https://example.com/a?b=c'),
      method: 'GET',
      headers: {},
      body: undefined,
      expect: undefined,
    });
  });

  it('is an object with a URL, and perhaps the rest of the request', () => {
    assert.deepEqual(
      readUrlPayload({ url, method: 'post', headers: { 'X-Test': '1' }, body: 'text', expect: [201, 409] }),
      {
        url: new URL(url),
        method: 'POST',
        headers: { 'content-type': 'text/plain; charset=utf-8', 'x-test': '1' },
        body: 'text',
        expect: [201, 409],
      },
    );
  });

  it('may have a body that is sent as JSON', () => {
    const at = new Date('2026-01-01T00:00:00Z');
    for (const body of [{ a: [1, null, { at }] }, [], 0, false]) {
      const read = readUrlPayload({ url, method: 'PUT', body });
      assert.equal(read.body, JSON.stringify(body));
      assert.deepEqual(read.headers, { 'content-type': 'application/json' });
    }
    const typed = readUrlPayload({
      url,
      method: 'PUT',
      body: {},
      headers: { 'Content-Type': 'application/x' },
    });
    assert.deepEqual(typed.headers, { 'content-type': 'application/x' });
  });

  it('has no body when that is null', () => {
    assert.equal(readUrlPayload({ url, body: null }).body, undefined);
  });

  it('may have user and password, which become a header', () => {
    const read = readUrlPayload('https://me:p%40ss%zz@example.com/a');
    assert.equal(read.url.href, 'https://example.com/a');
    const credentials = Buffer.from('me:p@ss%zz').toString('base64');
    assert.deepEqual(read.headers, { authorization: `Basic ${credentials}` });
    const given = readUrlPayload({
      url: 'https://me:x@example.com/',
      headers: { Authorization: 'Bearer y' },
    });
    assert.deepEqual(given.headers, { authorization: 'Bearer y' });
  });

  it('has no URL but of http and https', () => {
    for (const one of [
      'ftp://a/',
      'file:///etc/passwd',
      'gopher://a',
      'data:,x',
      'javascript:1',
      'ws://a/',
    ]) {
      refuses(
        one,
        /^payload\.url must be a URL that starts with http:\/\/ or https:\/\/, got one that starts/,
      );
    }
    for (const one of ['', '/path', 'example.com', 'http://', 'http://[fe80::1%25eth0]/', 'http://a b/']) {
      refuses(one, /got a string that is none/);
    }
    refuses({ url: 7 }, /got a value of type number/);
    refuses({ method: 'GET' }, /^payload\.url is missing/);
    for (const payload of [null, undefined, 7, [], [url]]) refuses(payload, /^payload must be an object/);
  });

  it('is never shown with its credentials', () => {
    for (const one of [
      'ftp://me:hush@a/?hush',
      'http://me:hush@a b/?hush',
      { url: 'https://me:hush@', hush: 1 },
    ]) {
      assert.throws(
        () => readUrlPayload(one),
        (error: Error) => !error.message.replace('payload.hush', '').includes('hush'),
      );
    }
  });

  it('has no method that is not for requests', () => {
    for (const method of ['CONNECT', 'TRACE', 'get it', '', 7]) {
      refuses({ url, method }, /^payload\.method must be one of GET, HEAD/);
    }
  });

  it('has a body only where one is sent', () => {
    for (const method of ['GET', 'HEAD', undefined])
      refuses({ url, method, body: 'x' }, /^payload\.body cannot be sent/);
    refuses({ url, method: 'POST', body: { a: () => 1 } }, /^payload\.body\.a is a function/);
    refuses({ url, method: 'POST', body: 1n }, /^payload\.body is a bigint/);
  });

  it('has no headers that belong to the connection, nor those of Chronos', () => {
    for (const name of [
      ...[
        'Host',
        'content-length',
        'Connection',
        'keep-alive',
        'Transfer-Encoding',
        'te',
        'Trailer',
        'upgrade',
      ],
      ...['Proxy-Connection', 'expect'],
    ]) {
      refuses(
        { url, headers: { [name]: 'x' } },
        new RegExp(`^payload\\.headers\\.${name} is set by the connection`),
      );
    }
    for (const name of ['Idempotency-Key', 'x-chronos-fence']) {
      refuses({ url, headers: { [name]: 'x' } }, /is set by Chronos/);
    }
  });

  it('has no headers that are none', () => {
    refuses({ url, headers: { a: 'x\r\nhost: b' } }, /^payload\.headers\.a is no header/);
    refuses({ url, headers: { a: '€' } }, /is no header/);
    refuses({ url, headers: { 'a b': 'x' } }, /is no header/);
    refuses({ url, headers: { '': 'x' } }, /is no header/);
    refuses({ url, headers: { a: 7 } }, /^payload\.headers\.a must be a string/);
    refuses({ url, headers: ['a'] }, /^payload\.headers must be an object of strings/);
    refuses({ url, headers: { a: 'x', A: 'y' } }, /has a name twice/);
  });

  it('expects statuses that a last answer can have', () => {
    for (const expect of [[], 200, [99], [101], [600], ['200'], [200.5]])
      refuses({ url, expect }, /^payload\.expect/);
  });

  it('has no keys that nobody reads', () => {
    refuses({ url, mehtod: 'POST' }, /^payload\.mehtod is not an option \(did you mean 'method'\?\)/);
  });
});

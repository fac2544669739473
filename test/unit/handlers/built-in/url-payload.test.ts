import assert from 'node:assert/strict';
import { parseUrlPayload } from '../../../../src/handlers/built-in/url-payload.js';

const url = 'https://example.com/';
const refuses = (payload: unknown, message: RegExp): void =>
  assert.throws(() => parseUrlPayload(payload), { code: 'INVALID_PAYLOAD', message });

describe('the payload of a url job [D2]', () => {
  it('is a URL, requested with GET', () => {
    assert.deepEqual(parseUrlPayload('https://example.com/a?b=c#d'), {
      url: new URL('https://example.com/a?b=c'),
      method: 'GET',
      headers: {},
      body: undefined,
      expect: undefined,
    });
  });

  it('is an object with a URL and optional parts of the request', () => {
    assert.deepEqual(
      parseUrlPayload({ url, method: 'post', headers: { 'X-Test': '1' }, body: 'text', expect: [201, 409] }),
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
      const read = parseUrlPayload({ url, method: 'PUT', body });
      assert.equal(read.body, JSON.stringify(body));
      assert.deepEqual(read.headers, { 'content-type': 'application/json' });
    }
    const typed = parseUrlPayload({
      url,
      method: 'PUT',
      body: {},
      headers: { 'Content-Type': 'application/x' },
    });
    assert.deepEqual(typed.headers, { 'content-type': 'application/x' });
  });

  it('has no body when it is null', () => {
    assert.equal(parseUrlPayload({ url, body: null }).body, undefined);
  });

  it('may have user and password, which become a header', () => {
    const read = parseUrlPayload('https://me:p%40ss%zz@example.com/a');
    assert.equal(read.url.href, 'https://example.com/a');
    const credentials = Buffer.from('me:p@ss%zz').toString('base64');
    assert.deepEqual(read.headers, { authorization: `Basic ${credentials}` });
    const given = parseUrlPayload({
      url: 'https://me:x@example.com/',
      headers: { Authorization: 'Bearer y' },
    });
    assert.deepEqual(given.headers, { authorization: 'Bearer y' });
  });

  it('has only http and https URLs', () => {
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
        /^payload\.url must be a URL that starts with http:\/\/ or https:\/\/, got a URL that starts/,
      );
    }
    for (const one of ['', '/path', 'example.com', 'http://', 'http://[fe80::1%25eth0]/', 'http://a b/']) {
      refuses(one, /got a string that is not a URL/);
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
        () => parseUrlPayload(one),
        (error: Error) => !error.message.replace('payload.hush', '').includes('hush'),
      );
    }
  });

  it('has only methods of requests', () => {
    for (const method of ['CONNECT', 'TRACE', 'get it', '', 7]) {
      refuses({ url, method }, /^payload\.method must be one of GET, HEAD/);
    }
  });

  it('has a body only where one can be sent', () => {
    for (const method of ['GET', 'HEAD', undefined])
      refuses({ url, method, body: 'x' }, /^payload\.body cannot be sent/);
    refuses({ url, method: 'POST', body: { a: () => 1 } }, /^payload\.body\.a is a function/);
    refuses({ url, method: 'POST', body: 1n }, /^payload\.body is a bigint/);
  });

  it('has no headers of the connection or of Chronos', () => {
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

  it('has no invalid headers', () => {
    refuses({ url, headers: { a: 'x\r\nhost: b' } }, /^payload\.headers\.a is not a valid header/);
    refuses({ url, headers: { a: '€' } }, /is not a valid header/);
    refuses({ url, headers: { 'a b': 'x' } }, /is not a valid header/);
    refuses({ url, headers: { '': 'x' } }, /is not a valid header/);
    refuses({ url, headers: { a: 7 } }, /^payload\.headers\.a must be a string/);
    refuses({ url, headers: ['a'] }, /^payload\.headers must be an object of strings/);
    refuses({ url, headers: { a: 'x', A: 'y' } }, /has the same name in upper and lower case/);
  });

  it('expects only statuses that a final response can have', () => {
    for (const expect of [[], 200, [99], [101], [600], ['200'], [200.5]])
      refuses({ url, expect }, /^payload\.expect/);
  });

  it('has no unknown keys', () => {
    refuses({ url, mehtod: 'POST' }, /^payload\.mehtod is not an option \(did you mean 'method'\?\)/);
  });
});

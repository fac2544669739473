import assert from 'node:assert/strict';
import { parseUrlPayload } from '../../../../src/handlers/built-in/url-payload.js';

const url = 'https://example.com/';
const assertInvalid = (payload: unknown, message: RegExp): void =>
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
      const parsed = parseUrlPayload({ url, method: 'PUT', body });
      assert.equal(parsed.body, JSON.stringify(body));
      assert.deepEqual(parsed.headers, { 'content-type': 'application/json' });
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
    const parsed = parseUrlPayload('https://me:p%40ss%zz@example.com/a');
    assert.equal(parsed.url.href, 'https://example.com/a');
    const credentials = Buffer.from('me:p@ss%zz').toString('base64');
    assert.deepEqual(parsed.headers, { authorization: `Basic ${credentials}` });
    const explicit = parseUrlPayload({
      url: 'https://me:x@example.com/',
      headers: { Authorization: 'Bearer y' },
    });
    assert.deepEqual(explicit.headers, { authorization: 'Bearer y' });
  });

  it('has only http and https URLs', () => {
    for (const invalid of [
      'ftp://a/',
      'file:///etc/passwd',
      'gopher://a',
      'data:,x',
      'javascript:1',
      'ws://a/',
    ]) {
      assertInvalid(
        invalid,
        /^payload\.url must be a URL that starts with http:\/\/ or https:\/\/, got a URL that starts/,
      );
    }
    for (const invalid of [
      '',
      '/path',
      'example.com',
      'http://',
      'http://[fe80::1%25eth0]/',
      'http://a b/',
    ]) {
      assertInvalid(invalid, /got a string that is not a URL/);
    }
    assertInvalid({ url: 7 }, /got a value of type number/);
    assertInvalid({ method: 'GET' }, /^payload\.url is missing/);
    for (const payload of [null, undefined, 7, [], [url]])
      assertInvalid(payload, /^payload must be an object/);
  });

  it('never appears in an error with its credentials', () => {
    for (const invalid of [
      'ftp://me:hush@a/?hush',
      'http://me:hush@a b/?hush',
      { url: 'https://me:hush@', hush: 1 },
    ]) {
      assert.throws(
        () => parseUrlPayload(invalid),
        (error: Error) => !error.message.replace('payload.hush', '').includes('hush'),
      );
    }
  });

  it('has one of the supported methods', () => {
    for (const method of ['CONNECT', 'TRACE', 'get it', '', 7]) {
      assertInvalid({ url, method }, /^payload\.method must be one of GET, HEAD/);
    }
  });

  it('has a body only where one can be sent', () => {
    for (const method of ['GET', 'HEAD', undefined])
      assertInvalid({ url, method, body: 'x' }, /^payload\.body cannot be sent/);
    assertInvalid({ url, method: 'POST', body: { a: () => 1 } }, /^payload\.body\.a is a function/);
    assertInvalid({ url, method: 'POST', body: 1n }, /^payload\.body is a bigint/);
  });

  it('cannot set headers of the connection or of Chronos', () => {
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
      assertInvalid(
        { url, headers: { [name]: 'x' } },
        new RegExp(`^payload\\.headers\\.${name} is set by the connection`),
      );
    }
    for (const name of ['Idempotency-Key', 'x-chronos-fence']) {
      assertInvalid({ url, headers: { [name]: 'x' } }, /is set by Chronos/);
    }
  });

  it('has no invalid headers', () => {
    assertInvalid({ url, headers: { a: 'x\r\nhost: b' } }, /^payload\.headers\.a is not a valid header/);
    assertInvalid({ url, headers: { a: '€' } }, /is not a valid header/);
    assertInvalid({ url, headers: { 'a b': 'x' } }, /is not a valid header/);
    assertInvalid({ url, headers: { '': 'x' } }, /is not a valid header/);
    assertInvalid({ url, headers: { a: 7 } }, /^payload\.headers\.a must be a string/);
    assertInvalid({ url, headers: ['a'] }, /^payload\.headers must be an object of strings/);
    assertInvalid({ url, headers: { a: 'x', A: 'y' } }, /has the same name in upper and lower case/);
  });

  it('expects only statuses that a final response can have', () => {
    for (const expect of [[], 200, [99], [101], [600], ['200'], [200.5]])
      assertInvalid({ url, expect }, /^payload\.expect/);
  });

  it('has no unknown keys', () => {
    assertInvalid({ url, mehtod: 'POST' }, /^payload\.mehtod is not an option \(did you mean 'method'\?\)/);
  });
});

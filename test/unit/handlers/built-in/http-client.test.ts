import assert from 'node:assert/strict';
import { type Hop, nextHop, showUrl } from '../../../../src/handlers/built-in/http-client.js';

const headers = {
  authorization: 'Bearer x',
  cookie: 'a=b',
  'proxy-authorization': 'Basic x',
  'x-api-key': 'hush',
  accept: 'text/plain',
  'content-type': 'text/plain',
  'content-language': 'de',
  'idempotency-key': 'job-1',
  'x-test': '1',
};

function hop(fields: Partial<Hop> = {}): Hop {
  return { url: new URL('https://a.example/x/y?secret=1'), method: 'POST', headers, body: 'text', ...fields };
}

describe('nextHop [D2]', () => {
  it('is undefined unless the response redirects', () => {
    for (const status of [200, 204, 300, 304, 305, 306, 400, 500]) {
      assert.equal(nextHop(hop(), status, 'https://a.example/'), undefined);
    }
    assert.equal(nextHop(hop(), 302, undefined), undefined);
  });

  it('is a GET without the body after 301, 302 and 303', () => {
    for (const status of [301, 302, 303]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        const next = nextHop(hop({ method }), status, '/z');
        assert.equal(next?.method, 'GET');
        assert.equal(next.body, undefined);
        assert.deepEqual(
          Object.keys(next.headers).filter((name) => name.startsWith('content-')),
          [],
        );
      }
    }
  });

  it('is the same request after 307 and 308, and for GET and HEAD', () => {
    for (const status of [307, 308]) {
      assert.deepEqual(nextHop(hop(), status, '/z'), hop({ url: new URL('https://a.example/z') }));
    }
    for (const method of ['GET', 'HEAD']) {
      for (const status of [301, 302, 303, 307, 308]) {
        assert.equal(nextHop(hop({ method, body: undefined }), status, '/z')?.method, method);
      }
    }
  });

  it('resolves a relative location against the last URL', () => {
    const target = (location: string): string | undefined => nextHop(hop(), 307, location)?.url.href;
    assert.equal(target('z'), 'https://a.example/x/z');
    assert.equal(target('?q'), 'https://a.example/x/y?q');
    assert.equal(target('//b.example/z'), 'https://b.example/z');
    assert.equal(target('https://me:hush@a.example/z#part'), 'https://a.example/z');
  });

  it('keeps only harmless headers when the origin changes', () => {
    const from = hop({ url: new URL('http://a.example/') });
    for (const location of [
      'http://b.example/',
      'http://a.example:8080/',
      'https://a.example/',
      'http://www.a.example/',
    ]) {
      assert.deepEqual(Object.keys(nextHop(from, 307, location)?.headers ?? {}), [
        'accept',
        'content-type',
        'content-language',
        'idempotency-key',
      ]);
      assert.deepEqual(Object.keys(nextHop(from, 303, location)?.headers ?? {}), [
        'accept',
        'idempotency-key',
      ]);
    }
    assert.deepEqual(nextHop(from, 307, 'http://a.example:80/z')?.headers, headers);
  });

  it('rejects a redirect from HTTPS to HTTP, or to another protocol', () => {
    for (const location of ['http://a.example/', 'http://b.example/?hush']) {
      assert.throws(() => nextHop(hop(), 302, location), {
        code: 'URL_REFUSED',
        message:
          /^https:\/\/a\.example\/x\/y redirects from https to http:\/\/[ab]\.example\/, which is not encrypted/,
      });
    }
    for (const location of ['file:///etc/passwd', 'ftp://a.example/', 'javascript:1']) {
      assert.throws(() => nextHop(hop(), 302, location), {
        code: 'URL_REFUSED',
        message: /only http: and https: are/,
      });
    }
  });

  it('fails when the location is invalid', () => {
    for (const location of ['http://', 'http://a b/', 'https://[x]/']) {
      assert.throws(() => nextHop(hop(), 302, location), {
        code: 'URL_FAILED',
        message: /is not a valid URL/,
      });
    }
  });
});

describe('showUrl [D2]', () => {
  it('shows neither credentials nor the query, and truncates a long URL', () => {
    assert.equal(showUrl(new URL('https://me:hush@a.example:8443/x?hush#hush')), 'https://a.example:8443/x');
    assert.ok(showUrl(new URL(`https://a.example/${'x'.repeat(5000)}`)).length < 250);
  });
});

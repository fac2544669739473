import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readEnvironment } from '../../../src/config/environment.js';
import { resolveHttpOptions, type HttpOptions } from '../../../src/config/http-options.js';

const MONGODB_URI = 'mongodb://db/app';
const TOKEN = 'a-token-hard-to-guess';

describe('HTTP settings in the environment', () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'chronos-http-'))));
  after(() => rmSync(folder, { recursive: true }));

  const read = (environment: Record<string, string>): HttpOptions | undefined =>
    readEnvironment({ MONGODB_URI, ...environment }).http;

  function errorOf(environment: Record<string, string>): string {
    try {
      read(environment);
    } catch (error) {
      const { message, code } = error as { message: string; code: string };
      assert.equal(code, 'INVALID_ENVIRONMENT');
      return message;
    }
    return '';
  }

  function file(name: string, content: string): string {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  }

  it('are ignored without HTTP_PORT', () => {
    assert.equal(read({ HTTP_HOST: '0.0.0.0', HTTP_TOKEN: TOKEN }), undefined);
  });

  it('listen on loopback by default, and on any free port with port 0 [B13]', () => {
    assert.deepEqual(read({ HTTP_PORT: '0' }), { port: 0 });
    assert.deepEqual(resolveHttpOptions({ port: 0 }), { port: 0, host: '127.0.0.1', maxLoopLag: 2000 });
  });

  it('read tokens from files', () => {
    const HTTP_TOKEN_FILE = file('operate', `${TOKEN}\n`);
    const HTTP_READ_TOKEN_FILE = file('read', `${TOKEN}-to-read\n`);
    assert.deepEqual(read({ HTTP_PORT: '1', HTTP_TOKEN_FILE, HTTP_READ_TOKEN_FILE }), {
      port: 1,
      token: TOKEN,
      readToken: `${TOKEN}-to-read`,
    });
  });

  it('reject a public address without a token and explain what to do [B13]', () => {
    for (const HTTP_HOST of [
      '0.0.0.0',
      '::',
      '10.1.2.3',
      'worker.example',
      '128.0.0.1',
      '127.evil.example',
    ]) {
      assert.match(
        errorOf({ HTTP_PORT: '1', HTTP_HOST }),
        /HTTP_HOST is .* set HTTP_TOKEN as well .* leave HTTP_HOST out/,
      );
      const HTTP_READ_TOKEN = TOKEN;
      assert.match(errorOf({ HTTP_PORT: '1', HTTP_HOST, HTTP_READ_TOKEN }), /set HTTP_TOKEN as well/);
      assert.equal(errorOf({ HTTP_PORT: '1', HTTP_HOST, HTTP_TOKEN: TOKEN }), '');
    }
    for (const HTTP_HOST of ['localhost', '127.0.0.1', '127.9.9.9', '::1', 'LocalHost'])
      assert.equal(errorOf({ HTTP_PORT: '1', HTTP_HOST }), '');
    assert.throws(() => resolveHttpOptions({ port: 1, host: '0.0.0.0' }), {
      code: 'INVALID_OPTIONS',
      message: /serveHttp\(\) options\.token/,
    });
  });

  it('never show a token in an error', () => {
    for (const bad of ['short', 'has a space in it, and more', `${TOKEN}é`]) {
      for (const message of [
        errorOf({ HTTP_PORT: '1', HTTP_TOKEN: bad }),
        errorOf({ HTTP_PORT: '1', HTTP_READ_TOKEN_FILE: file('bad', bad) }),
      ]) {
        assert.match(message, /must be at least 16 characters .*its value is not shown/);
        assert.ok(!message.includes(bad));
      }
    }
  });

  it('report contradictions, invalid values and unreadable files', () => {
    const HTTP_TOKEN_FILE = file('token', TOKEN);
    assert.match(errorOf({ HTTP_PORT: '1', HTTP_TOKEN: TOKEN, HTTP_TOKEN_FILE }), /are both set/);
    assert.match(
      errorOf({ HTTP_PORT: '1', HTTP_TOKEN: TOKEN, HTTP_READ_TOKEN: TOKEN }),
      /HTTP_READ_TOKEN and HTTP_TOKEN must differ/,
    );
    assert.match(
      errorOf({ HTTP_PORT: '1', HTTP_TOKEN_FILE: join(folder, 'nowhere') }),
      /HTTP_TOKEN_FILE names a file that cannot be read: ENOENT/,
    );
    assert.match(errorOf({ HTTP_PORT: '65536' }), /HTTP_PORT must be a whole number from 0 to 65535/);
    assert.match(errorOf({ HTTP_PORT: '1', HTTP_HOST: 'http://x' }), /HTTP_HOST must be an address/);
    assert.throws(() => resolveHttpOptions({}), { message: /options\.port is missing/ });
    assert.throws(() => resolveHttpOptions({ port: 1, tokne: TOKEN }), { message: /did you mean.*token/ });
  });
});

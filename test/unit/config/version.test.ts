import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { VERSION } from '../../../src/config/version.js';

describe('VERSION', () => {
  it('is the version in package.json', () => {
    const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
    assert.equal(VERSION, (JSON.parse(manifest) as { version: string }).version);
  });
});

import assert from 'node:assert/strict';
import { ChronosError } from '../../../src/index.js';
import { explained } from '../../../src/process/explained.js';

describe('explained', () => {
  it('shows the lines of an error of our own, also of another copy of this package', () => {
    const lines = ['2 settings are wrong:', '  - one', '  - two'];
    assert.deepEqual(explained(new ChronosError('INVALID_ENVIRONMENT', lines.join('\n'))), lines);
    const copy = Object.assign(new Error('no such job'), { name: 'ChronosError', code: 'JOB_NOT_FOUND' });
    assert.deepEqual(explained(copy), ['no such job']);
  });

  it('names what kept the audit collection from being written', () => {
    const cause = new Error('not authorized on mongodb://me:secret@host/');
    const error = new ChronosError('AUDIT_UNWRITABLE', 'nothing was changed', { cause });
    assert.deepEqual(explained(error), [
      'nothing was changed',
      'Error: not authorized on mongodb://***@host/',
    ]);
  });

  it('shows what others threw on one line, by its name and without credentials', () => {
    const error = new TypeError('cannot reach mongodb://me:secret@host/\nOK: all is well');
    assert.deepEqual(explained(error), ['TypeError: cannot reach mongodb://***@host/\\nOK: all is well']);
    assert.deepEqual(explained('thrown'), ['Error: thrown']);
  });

  it('writes out what would do something to a terminal', () => {
    const hostile = '\u001b]0;x\u0007\u009b31m\u202e';
    const written = '\\x1b]0;x\\x07\\x9b31m\\u202e';
    assert.deepEqual(explained(new ChronosError('INVALID_ARGUMENT', hostile)), [written]);
    assert.deepEqual(explained(new Error(hostile)), [`Error: ${written}`]);
  });
});

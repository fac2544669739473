import assert from 'node:assert/strict';
import { ChronosError } from '../../../src/index.js';
import { formatError } from '../../../src/process/exit.js';

describe('formatError', () => {
  it('shows the lines of a ChronosError, also of another copy of this package', () => {
    const lines = ['2 settings are wrong:', '  - one', '  - two'];
    assert.deepEqual(formatError(new ChronosError('INVALID_ENVIRONMENT', lines.join('\n'))), lines);
    const copy = Object.assign(new Error('no such job'), { name: 'ChronosError', code: 'JOB_NOT_FOUND' });
    assert.deepEqual(formatError(copy), ['no such job']);
  });

  it('adds the reason why the audit entry could not be written', () => {
    const cause = new Error('not authorized on mongodb://me:secret@host/');
    const error = new ChronosError('AUDIT_UNWRITABLE', 'no change made', { cause });
    assert.deepEqual(formatError(error), ['no change made', 'Error: not authorized on mongodb://***@host/']);
  });

  it('shows other errors on one line with their name and without credentials', () => {
    const error = new TypeError('cannot reach mongodb://me:secret@host/\nOK: all is well');
    assert.deepEqual(formatError(error), ['TypeError: cannot reach mongodb://***@host/\\nOK: all is well']);
    assert.deepEqual(formatError('thrown'), ['Error: thrown']);
  });

  it('indents the lines after the first, which may come from a stored text', () => {
    const error = new ChronosError('INVALID_ARGUMENT', "no job 'x\nDispatched y'");
    assert.deepEqual(formatError(error), ["no job 'x", "  Dispatched y'"]);
  });

  it('escapes control characters', () => {
    const hostile = '\u001b]0;x\u0007\u009b31m\u202e';
    const escaped = '\\x1b]0;x\\x07\\x9b31m\\u202e';
    assert.deepEqual(formatError(new ChronosError('INVALID_ARGUMENT', hostile)), [escaped]);
    assert.deepEqual(formatError(new Error(hostile)), [`Error: ${escaped}`]);
  });
});

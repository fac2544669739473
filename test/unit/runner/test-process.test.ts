import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { TestProcess } from '../../runner/test-process.js';
import { assertNoCrash } from '../../support/crashes.js';

describe('the test runner', () => {
  let mongodbUri: string | undefined;

  before(() => {
    // So that the process does not start its own.
    mongodbUri = process.env['MONGODB_URI'];
    process.env['MONGODB_URI'] = process.env['CHRONOS_TEST_URI'];
  });

  after(() => {
    if (mongodbUri === undefined) delete process.env['MONGODB_URI'];
    else process.env['MONGODB_URI'] = mongodbUri;
  });

  it('fails a file for every rejection that nobody handles, also one of a thread', async () => {
    const testProcess = new TestProcess({ grep: undefined, forbidOnly: true });
    const { passed, failed, failures, output } = await testProcess.run(
      'test/fixtures/unhandled-rejections.ts',
    );
    assert.deepEqual({ passed, failed }, { passed: 2, failed: 2 }, output);
    assert.deepEqual(failures, [
      'unhandled rejection: Error: rejected in the thread 0',
      'unhandled rejection: Error: rejected in another thread',
    ]);
    assert.match(output, /Unhandled rejection: Error: rejected in the thread 0\n +at /);
    assert.equal(await testProcess.end(), null);
  });

  it('knows the output of a process that had an unhandled rejection, whatever its exit code', () => {
    const stderrOf = (code: string): string =>
      spawnSync(process.execPath, ['--eval', code], { encoding: 'utf8' }).stderr;
    const rejection = "Promise.reject(new Error('nobody waits for this'))";
    assert.throws(
      () => assertNoCrash('it', stderrOf(rejection)),
      /it had an uncaught error:[^]*nobody waits/,
    );
    assertNoCrash('it', stderrOf("console.error(new Error('reported')); process.exit(1)"));
  });
});

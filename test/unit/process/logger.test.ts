import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const LOGGER = new URL('../../../src/process/logger.ts', import.meta.url).href;
const HOSTILE = 'a\u001b[2J\u0085\u009b31m\u202e\u200b\u{e0041}é\n';

async function outputOf(program: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [
      ...['--import', 'tsx', '--input-type=module', '-e'],
      `const { createLogger } = await import(${JSON.stringify(LOGGER)}); ${program}`,
    ],
    { cwd: fileURLToPath(new URL('../../..', import.meta.url)) },
  );
  return stdout;
}

describe('the log', () => {
  it('is JSON that preserves all text and contains no control characters', async () => {
    const stdout = await outputOf(`
      const stored = ${JSON.stringify(HOSTILE)};
      createLogger({ logLevel: 'info', logFormat: 'json' }).warn({ err: new Error(stored), name: stored }, stored);`);
    const { msg, name, err } = JSON.parse(stdout) as { msg: string; name: string; err: { message: string } };
    assert.deepEqual([msg, name, err.message], [HOSTILE, HOSTILE, HOSTILE]);
    assert.doesNotMatch(stdout.slice(0, -1), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    assert.ok(stdout.endsWith('}\n') && stdout.includes('é'));
  });

  it('shows the message of an error once if its causes have the same message', async () => {
    const logged = (format: string): Promise<string> =>
      outputOf(`
        const cause = new Error('no route', { cause: new Error('no route') });
        const log = createLogger({ logLevel: 'info', logFormat: '${format}' });
        log.warn({ err: new Error('no route', { cause }) }, 'cannot sweep');`);
    const [json, line] = await Promise.all([logged('json'), logged('pretty')]);
    const { err } = JSON.parse(json) as { err: { message: string; stack: string } };
    assert.equal(err.message, 'no route');
    assert.match(err.stack, /caused by/);
    assert.match(line, /cannot sweep: no route$/m);
  });
});

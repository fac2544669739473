import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Scheduler } from '../../../src/index.js';
import { loadHandlers } from '../../../src/process/load-handlers.js';

describe('the handlers module', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chronos-handlers-'));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  async function load(name: string, source?: string): Promise<Scheduler> {
    const file = join(folder, `${name}.mjs`);
    if (source !== undefined) await writeFile(file, source);
    const scheduler = new Scheduler({ uri: 'mongodb://127.0.0.1:1/none' });
    await loadHandlers(scheduler, file);
    return scheduler;
  }

  async function messageOf(name: string, source?: string): Promise<string> {
    const error = await load(name, source).then(
      () => assert.fail('the module was loaded'),
      (error: unknown) => error as { code: string; message: string },
    );
    assert.equal(error.code, 'INVALID_ENVIRONMENT');
    return error.message;
  }

  it('exports handlers by task type, a default object or a default function', async () => {
    for (const [name, source] of [
      ['named', 'export const work = () => 1;'],
      ['object', 'export default { work: () => 1 };'],
      ['function', "export default (scheduler) => scheduler.registerHandler('work', () => 1);"],
    ] as const)
      assert.ok((await load(name, source)).load.taskTypes.includes('work'), name);
  });

  it('is rejected if it is missing or exports no handlers', async () => {
    assert.match(await messageOf('missing'), /there is no module .*missing\.mjs/);
    assert.match(await messageOf('empty', ''), /exports nothing; its exports must be handlers/);
    assert.match(await messageOf('five', 'export const five = 5;'), /'five' must be .*; its exports must be/);
  });

  it('is rejected with the line that fails', async () => {
    assert.match(
      await messageOf('throws', '\nthrow new Error("no")'),
      /cannot be loaded: no \(.*throws\.mjs:2\)$/,
    );
    assert.match(await messageOf('wrong', 'export const a = '), /Unexpected end of input \(`node --check/);
    const cron = "export default (s) => {\n  s.schedule('a', () => 1).cron('61 * * * *');\n};";
    assert.match(await messageOf('cron', cron), /minute '61' is invalid.*\(.*cron\.mjs:2\)$/);
    const typo = "export default (s) => s.schedule('a', () => 1).dailly();";
    assert.match(await messageOf('typo', typo), /dailly is not a function \(.*typo\.mjs:1\)$/);
  });
});

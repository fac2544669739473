import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Changes } from '../../../src/cli/changes.js';
import { systemClock } from '../../../src/runtime/system-clock.js';

describe('Changes', () => {
  let folder: string;
  let changes: Changes;
  let ends: AbortController;

  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(tmpdir(), 'chronos-changes-')), 'dist');
    await mkdir(path.join(folder, 'mail'), { recursive: true });
    await write('handlers.js');
    await write('mail/send.js');
    changes = new Changes(folder, systemClock);
    ends = new AbortController();
  });

  afterEach(async () => {
    changes.close();
    await rm(path.dirname(folder), { recursive: true, force: true });
  });

  const write = (file: string): Promise<void> => writeFile(path.join(folder, file), `// ${Math.random()}`);

  /** What is told of while `act` happens. */
  async function told(act: () => Promise<unknown>): Promise<string | undefined> {
    const next = changes.next(ends.signal);
    await act();
    return next;
  }

  it('goes on with folders that were removed and made anew', async () => {
    assert.match((await told(() => rm(folder, { recursive: true }))) ?? '', /\.js$/);
    const built = await told(async () => {
      await mkdir(path.join(folder, 'mail'), { recursive: true });
      await write('mail/send.js');
    });
    assert.match(built ?? '', /dist|mail|send\.js/);
    assert.equal(await told(() => write('mail/send.js')), 'send.js');
    assert.equal(await told(() => write('handlers.js')), 'handlers.js');
  });

  it('goes on with a folder that was removed and made anew between two looks', async () => {
    const mail = path.join(folder, 'mail');
    await told(async () => {
      await rm(mail, { recursive: true });
      await mkdir(mail);
    });
    assert.equal(await told(() => write('mail/send.js')), 'send.js');
  });

  it('tells of folders that came, and of what changes in them', async () => {
    const came = await told(async () => {
      await mkdir(path.join(folder, 'reports'));
      await write('reports/weekly.js');
    });
    assert.match(came ?? '', /reports|weekly\.js/);
    assert.equal(await told(() => write('reports/weekly.js')), 'weekly.js');
  });

  it('leaves nothing on the signal that ends it', async () => {
    for (let change = 0; change < 3; change++) {
      assert.equal(await told(() => write('handlers.js')), 'handlers.js');
      assert.equal(getEventListeners(ends.signal, 'abort').length, 0);
    }
    assert.equal(await told(async () => ends.abort()), undefined);
  });

  it('refuses a folder that is not there', () => {
    assert.throws(() => new Changes(path.join(folder, 'none'), systemClock), /ENOENT/);
  });
});

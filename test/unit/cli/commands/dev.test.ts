import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SourceWatcher } from '../../../../src/cli/commands/dev.js';
import { systemClock } from '../../../../src/runtime/system-clock.js';

describe('SourceWatcher', () => {
  let folder: string;
  let watcher: SourceWatcher;
  let aborter: AbortController;

  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(tmpdir(), 'chronos-sources-')), 'dist');
    await mkdir(path.join(folder, 'mail'), { recursive: true });
    await write('handlers.js');
    await write('mail/send.js');
    watcher = new SourceWatcher(folder, systemClock);
    aborter = new AbortController();
  });

  afterEach(async () => {
    await rm(path.dirname(folder), { recursive: true, force: true });
  });

  const write = (file: string): Promise<void> => writeFile(path.join(folder, file), `// ${Math.random()}`);

  /** The change that is reported while `act` runs. */
  async function changeDuring(act: () => Promise<unknown>): Promise<string | undefined> {
    const next = watcher.next(aborter.signal);
    await act();
    return next;
  }

  it('sees changes in folders that were removed and created again', async () => {
    assert.match((await changeDuring(() => rm(folder, { recursive: true }))) ?? '', /\.js$/);
    const built = await changeDuring(async () => {
      await mkdir(path.join(folder, 'mail'), { recursive: true });
      await write('mail/send.js');
    });
    assert.match(built ?? '', /send\.js/);
    assert.equal(await changeDuring(() => write('mail/send.js')), 'send.js');
    assert.equal(await changeDuring(() => write('handlers.js')), 'handlers.js');
  });

  it('sees changes in a folder that was removed and created again between two polls', async () => {
    const mail = path.join(folder, 'mail');
    await changeDuring(async () => {
      await rm(mail, { recursive: true });
      await mkdir(mail);
    });
    assert.equal(await changeDuring(() => write('mail/send.js')), 'send.js');
  });

  it('sees new folders and changes in them', async () => {
    const created = await changeDuring(async () => {
      await mkdir(path.join(folder, 'reports'));
      await write('reports/weekly.js');
    });
    assert.match(created ?? '', /weekly\.js/);
    assert.equal(await changeDuring(() => write('reports/weekly.js')), 'weekly.js');
  });

  it('leaves no listeners on the signal', async () => {
    for (let change = 0; change < 3; change++) {
      assert.equal(await changeDuring(() => write('handlers.js')), 'handlers.js');
      assert.equal(getEventListeners(aborter.signal, 'abort').length, 0);
    }
    assert.equal(await changeDuring(async () => aborter.abort()), undefined);
  });

  it('rejects a folder that does not exist', () => {
    assert.throws(() => new SourceWatcher(path.join(folder, 'none'), systemClock), /ENOENT/);
  });
});

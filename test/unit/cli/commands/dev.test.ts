import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SourceWatcher } from '../../../../src/cli/commands/dev.js';
import { flushEventLoop } from '../../../support/flush-event-loop.js';
import { ManualClock } from '../../../support/manual-clock.js';

const POLL_MS = 200;

describe('SourceWatcher', () => {
  let folder: string;
  let clock: ManualClock;
  let watcher: SourceWatcher;
  let aborter: AbortController;
  let modified = 0;

  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(tmpdir(), 'chronos-sources-')), 'dist');
    await mkdir(path.join(folder, 'mail'), { recursive: true });
    await write('handlers.js');
    await write('mail/send.js');
    clock = new ManualClock();
    watcher = new SourceWatcher(folder, clock);
    aborter = new AbortController();
  });

  afterEach(async () => {
    await rm(path.dirname(folder), { recursive: true, force: true });
  });

  /** Sets a new modification time, because two real ones within a few milliseconds can be equal. */
  async function write(file: string): Promise<void> {
    const target = path.join(folder, file);
    await writeFile(target, '// source');
    modified++;
    await utimes(target, modified, modified);
  }

  /** The change that is reported after `act` ran between two polls. */
  async function changeAfter(act: () => Promise<unknown>): Promise<string | undefined> {
    const next = watcher.next(aborter.signal);
    await act();
    // The first poll finds the change, the second one that it is complete.
    for (let poll = 0; poll < 2; poll++) {
      clock.advance(POLL_MS);
      await flushEventLoop();
    }
    return next;
  }

  it('sees changes in folders that were removed and created again', async () => {
    assert.match((await changeAfter(() => rm(folder, { recursive: true }))) ?? '', /\.js$/);
    const built = await changeAfter(async () => {
      await mkdir(path.join(folder, 'mail'), { recursive: true });
      await write('mail/send.js');
    });
    assert.match(built ?? '', /send\.js/);
    assert.equal(await changeAfter(() => write('mail/send.js')), 'send.js');
    assert.equal(await changeAfter(() => write('handlers.js')), 'handlers.js');
  });

  it('sees changes in a folder that was removed and created again between two polls', async () => {
    const mail = path.join(folder, 'mail');
    await changeAfter(async () => {
      await rm(mail, { recursive: true });
      await mkdir(mail);
    });
    assert.equal(await changeAfter(() => write('mail/send.js')), 'send.js');
  });

  it('sees new folders and changes in them', async () => {
    const created = await changeAfter(async () => {
      await mkdir(path.join(folder, 'reports'));
      await write('reports/weekly.js');
    });
    assert.match(created ?? '', /weekly\.js/);
    assert.equal(await changeAfter(() => write('reports/weekly.js')), 'weekly.js');
  });

  it('leaves no listeners on the signal', async () => {
    for (let change = 0; change < 3; change++) {
      assert.equal(await changeAfter(() => write('handlers.js')), 'handlers.js');
      assert.equal(getEventListeners(aborter.signal, 'abort').length, 0);
    }
    assert.equal(await changeAfter(async () => aborter.abort()), undefined);
  });

  it('rejects a folder that does not exist', () => {
    assert.throws(() => new SourceWatcher(path.join(folder, 'none'), clock), /ENOENT/);
  });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EmbeddedMongod, freeStablePort, startMongod } from '@chronos/mongod';

describe('the embedded MongoDB', () => {
  let folder: string;
  let mongod: EmbeddedMongod | undefined;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'chronos-mongod-'));
  });

  afterEach(async () => {
    await mongod?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('starts again on the same data and port right after it was stopped', async () => {
    const port = await freeStablePort();
    mongod = await startMongod({ dataPath: folder, port });
    const { uri } = mongod;
    await mongod.stop();
    mongod = await startMongod({ dataPath: folder, port });
    assert.equal(mongod.uri, uri);
  });
});

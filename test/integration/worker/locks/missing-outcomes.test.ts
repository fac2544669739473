import assert from 'node:assert/strict';
import { useDatabase } from '../../../support/database.js';
import { nextEvent, signal } from '../../../support/events.js';
import { OpenSockets } from '../../../support/hung-sockets.js';
import { TcpProxy } from '../../../support/tcp-proxy.js';

describe('a worker whose renewal thread reaches MongoDB while its main thread does not', () => {
  const database = useDatabase();
  let proxy: TcpProxy;
  let sockets: OpenSockets;

  beforeEach(async () => {
    const { hostname, port } = new URL(database.uri);
    proxy = new TcpProxy(hostname, Number(port));
    await proxy.restore();
    sockets = new OpenSockets(proxy.port);
  });

  afterEach(async () => {
    sockets.close();
    await proxy.cut();
  });

  it('does not keep a job whose outcome it cannot store: another worker runs it [C8]', async () => {
    const uri = new URL(database.uri);
    uri.port = String(proxy.port);
    uri.search = '?directConnection=true';
    const cutOff = database.scheduler({ uri: uri.href, lockTimeout: '3s' });
    const go = signal();
    cutOff.registerHandler('work', async () => {
      await go.promise;
      return 'from the first';
    });
    await cutOff.start();
    const started = nextEvent(cutOff, 'job:start');
    const { id } = await cutOff.dispatch('work');
    await started;

    const reported = nextEvent(cutOff, 'worker:error', ({ operation }) => operation === 'check locks');
    const other = database.scheduler({
      lockTimeout: '3s',
      taskHandlers: { work: () => 'from the second' },
      retries: { base: '10ms' },
    });
    await other.start();
    const complete = nextEvent(other, 'job:complete');
    sockets.block();
    go.fire();
    const { subject, error } = await reported;
    assert.equal(subject, id);
    assert.match(error.message, /could not be stored in time: its lock is not renewed any more/);
    assert.equal((await complete).result, 'from the second');

    const lost = nextEvent(cutOff, 'job:lockLost');
    sockets.unblock();
    assert.equal((await lost).jobId, id);
    assert.equal((await database.collections.jobs.findOne({ _id: id }))?.result, 'from the second');
  }).timeout(60_000);
});

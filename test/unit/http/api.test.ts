import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { withRequestSignal } from '../../../src/http/api.js';
import { ManualClock } from '../../support/manual-clock.js';

describe('withRequestSignal', () => {
  let response: ServerResponse;
  let stopping: AbortController;
  let clock: ManualClock;

  beforeEach(() => {
    response = new ServerResponse(new IncomingMessage(new Socket()));
    stopping = new AbortController();
    clock = new ManualClock();
  });

  const untilAborted = async (signal: AbortSignal): Promise<string> => {
    if (!signal.aborted) await once(signal, 'abort');
    return 'aborted';
  };

  function run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withRequestSignal({ response, stopping: stopping.signal, timeoutMs: 30_000, clock }, work);
  }

  const countListeners = (): number =>
    getEventListeners(stopping.signal, 'abort').length + response.listenerCount('close');

  it('removes all its listeners, whether the work succeeds or fails', async () => {
    const before = countListeners();
    for (let request = 0; request < 20; request++) {
      await run(async () => assert.equal(countListeners(), before + 2));
      await assert.rejects(run(() => Promise.reject(new Error('no'))));
    }
    assert.deepEqual([countListeners(), clock.sleepers], [before, 0]);
  });

  it('aborts when the client disconnects, even before the work begins', async () => {
    const work = run(untilAborted);
    response.destroy();
    response.emit('close');
    assert.equal(await work, 'aborted');
    assert.equal(await run(untilAborted), 'aborted');
  });

  it('aborts when the worker stops, even before the work begins', async () => {
    const work = run(untilAborted);
    stopping.abort();
    assert.equal(await work, 'aborted');
    assert.equal(await run(untilAborted), 'aborted');
  });

  it('aborts after the timeout', async () => {
    const work = run(untilAborted);
    clock.advance(30_000);
    assert.equal(await work, 'aborted');
  });
});

import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { whileWanted } from '../../../src/http/while-wanted.js';
import { ManualClock } from '../../support/manual-clock.js';

describe('whileWanted', () => {
  let to: ServerResponse;
  let stops: AbortController;
  let clock: ManualClock;

  beforeEach(() => {
    to = new ServerResponse(new IncomingMessage(new Socket()));
    stops = new AbortController();
    clock = new ManualClock();
  });

  const untilAborted = async (signal: AbortSignal): Promise<string> => {
    if (!signal.aborted) await once(signal, 'abort');
    return 'aborted';
  };

  function wanted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return whileWanted({ to, stopping: stops.signal, longest: 30_000, clock }, work);
  }

  const left = (): number => getEventListeners(stops.signal, 'abort').length + to.listenerCount('close');

  it('leaves nothing behind on the signal of the process, whatever comes of the work', async () => {
    const before = left();
    for (let request = 0; request < 20; request++) {
      await wanted(async () => assert.equal(left(), before + 2));
      await assert.rejects(wanted(() => Promise.reject(new Error('no'))));
    }
    assert.deepEqual([left(), clock.sleepers], [before, 0]);
  });

  it('ends when whoever asked is gone, also before it began', async () => {
    const work = wanted(untilAborted);
    to.destroy();
    to.emit('close');
    assert.equal(await work, 'aborted');
    assert.equal(await wanted(untilAborted), 'aborted');
  });

  it('ends when the worker stops, also before it began', async () => {
    const work = wanted(untilAborted);
    stops.abort();
    assert.equal(await work, 'aborted');
    assert.equal(await wanted(untilAborted), 'aborted');
  });

  it('ends when time is up', async () => {
    const work = wanted(untilAborted);
    clock.advance(30_000);
    assert.equal(await work, 'aborted');
  });
});

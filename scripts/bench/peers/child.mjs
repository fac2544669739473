// One process of a peer, forked by the benchmark for one task. Its clock starts with the message `go`: by then the code is
// loaded, but nothing is connected.
import { Tally } from './tally.mjs';

const { peer, task, url, jobs, concurrency } = JSON.parse(process.argv[2]);
const { clear, enqueue, work, settings } = await import(`./${peer}.mjs`);

const tasks = {
  async fill() {
    await clear(url);
    await enqueue(url, jobs);
    return {};
  },

  async work() {
    const tally = new Tally(jobs);
    const stop = await work(url, concurrency, tally);
    const { milliseconds } = tally;
    // Before counting: until the worker has stopped, jobs may start a second time.
    await stop();
    const { startedTwice, missed } = tally;
    return { milliseconds, startedTwice, missed, settings: settings(concurrency) };
  },

  async clear() {
    await clear(url);
    return {};
  },
};

process.once('message', async () => {
  // Some peers leave timers that would keep the process alive.
  process.send({ report: await tasks[task]() }, () => process.exit());
});
process.send('loaded');

// One process of a peer, forked by the benchmark for one task. Its clock starts when it is told to go: the code
// is loaded by then, and nothing is connected.
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
    // A job that starts once more would do so while the worker is still there.
    await stop();
    return { milliseconds, twice: tally.twice, missed: tally.missed, settings: settings(concurrency) };
  },

  async clear() {
    await clear(url);
    return {};
  },
};

process.once('message', async () => {
  // Some peers keep timers that would hold the process for long.
  process.send({ report: await tasks[task]() }, () => process.exit());
});
process.send('loaded');

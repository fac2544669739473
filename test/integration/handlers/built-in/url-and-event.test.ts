import assert from 'node:assert/strict';
import type { JobView } from '../../../../src/index.js';
import { manualScheduler } from '../../../support/manual-scheduler.js';
import { recordEvents } from '../../../support/events.js';
import { START } from '../../../support/instants.js';
import { useSharedDatabase } from '../../../support/shared-database.js';
import { closeServers, serve } from '../../../support/handlers/http-server.js';
import { runJob, runStoredSchedule } from '../../../support/handlers/job-outcomes.js';

const MINUTE = 60_000;

describe('built-in handlers', () => {
  const database = useSharedDatabase();

  const code = ({ error }: JobView): string | null | undefined => error?.code;

  describe('url', () => {
    afterEach(closeServers);

    it('sends the request with the id of the job [D2]', async () => {
      const { url, requests } = await serve((_, response) => response.end('pong'));
      const { scheduler } = manualScheduler(database, { urlHosts: ['127.0.0.1'] });
      const ping = scheduler
        .define('url', { method: 'GET', url: `${url}/ping` })
        .named('ping')
        .everyMinute();
      const { id, status, result } = await runJob(scheduler, ping.dispatch());
      assert.equal(status, 'COMPLETED');
      assert.deepEqual(
        [(result as { status: number }).status, (result as { body: string }).body],
        [200, 'pong'],
      );
      const [{ method, path, headers }] = requests as [(typeof requests)[0]];
      assert.deepEqual(
        [method, path, headers['idempotency-key'], headers['x-chronos-fence']],
        ['GET', '/ping', id, '1'],
      );
    });

    it('accepts a plain address, and a dispatch may set another [D2]', async () => {
      const { url, requests } = await serve((_, response) => response.end());
      const { scheduler } = manualScheduler(database, { urlHosts: ['127.0.0.1'] });
      const ping = scheduler.define('url', `${url}/a`).named('ping');
      await runJob(scheduler, ping.dispatch());
      await runJob(scheduler, ping.dispatch({ url: `${url}/b`, method: 'POST', body: { n: 1 } }));
      assert.deepEqual(
        requests.map(({ method, path, body }) => [method, path, body]),
        [
          ['GET', '/a', ''],
          ['POST', '/b', '{"n":1}'],
        ],
      );
    });

    it('fails the attempt, which is retried, when the response is unexpected [D2]', async () => {
      let answers = 0;
      const { url } = await serve((_, response) => {
        response.statusCode = ++answers === 1 ? 503 : 200;
        response.end();
      });
      const { scheduler, clock } = manualScheduler(database, { urlHosts: ['127.0.0.1'] });
      const { id } = await scheduler.define('url', url).named('ping').maxRetries(1).dispatch();
      await scheduler.run();
      const job = await scheduler.getJob(id);
      assert.deepEqual([job?.status, job?.error?.code], ['SCHEDULED', 'URL_FAILED']);
      clock.advance(MINUTE);
      await scheduler.run();
      assert.equal((await scheduler.getJob(id))?.status, 'COMPLETED');
    });

    it('works for stored schedules and dispatched jobs; private addresses must be allowed [D2]', async () => {
      const { url, requests } = await serve((_, response) => response.end('pong'));
      const stored = await runStoredSchedule(database, 'url', url, { urlHosts: ['127.0.0.1'] });
      assert.deepEqual([stored.status, (stored.result as { body: string }).body], ['COMPLETED', 'pong']);
      const { scheduler } = manualScheduler(database);
      const rejected = await runJob(scheduler, scheduler.dispatch('url', url, { retries: { max: 1 } }));
      assert.deepEqual([rejected.status, code(rejected)], ['FAILED', 'URL_REFUSED']);
      assert.equal(requests.length, 1);
    });

    it('fails without a retry when the request is invalid [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      for (const payload of [
        null,
        5,
        'example.com',
        'ftp://example.com',
        { url: 'https://a', methode: 'GET' },
      ]) {
        const job = await runJob(scheduler, scheduler.dispatch('url', payload, { retries: { max: 5 } }));
        assert.deepEqual(
          [job.status, job.attempts, code(job)],
          ['FAILED', 1, 'INVALID_PAYLOAD'],
          JSON.stringify(payload),
        );
      }
    });
  });

  describe('event', () => {
    it('calls the listeners of the channel with the data and the job [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const received: unknown[] = [];
      scheduler.channel.on('order:paid', (data, job) => received.push([data, job.id]));
      const paid = scheduler.define('event', { event: 'order:paid', data: { n: 7 } }).named('paid');
      const { id, result } = await runJob(scheduler, paid.dispatch());
      assert.deepEqual(received, [[{ n: 7 }, id]]);
      assert.deepEqual(result, { listeners: 1 });
    });

    it('cannot forge an event of the scheduler [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const events = recordEvents(scheduler, 'job:complete', 'job:failed', 'worker:state');
      const received: unknown[] = [];
      const forged = { jobId: 'x', taskType: 'x', result: 'forged' };
      scheduler.channel.on('job:complete', (data) => received.push(data));
      const { id } = await runJob(
        scheduler,
        scheduler.dispatch('event', { event: 'job:complete', data: forged }),
      );
      assert.deepEqual(received, [forged]);
      assert.deepEqual(
        events.map(({ name, event }) => [name, (event as { jobId: string }).jobId]),
        [['job:complete', id]],
      );
    });

    it('does not receive events of the scheduler [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.channel.on('job:complete', () => assert.fail('the channel must not receive it'));
      scheduler.registerHandler('work', () => 1);
      assert.equal((await runJob(scheduler, scheduler.dispatch('work'))).status, 'COMPLETED');
    });

    it('fails the attempt, with a hint, when there is no listener [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      scheduler.channel.on('order:paid', () => 1);
      const typo = scheduler.define('event', 'order:piad').named('typo').maxRetries(0);
      const job = await runJob(scheduler, typo.dispatch());
      assert.deepEqual([job.status, code(job)], ['FAILED', 'EVENT_UNHEARD']);
      assert.match(job.error!.message, /did you mean 'order:paid'\?/);
    });

    it('awaits its listeners and fails the attempt when one throws [D2]', async () => {
      const { scheduler } = manualScheduler(database);
      const finished: string[] = [];
      scheduler.channel.on('tick', () => Promise.reject(new Error('boom')));
      scheduler.channel.on('tick', async () => {
        await database.collections.jobs.countDocuments();
        finished.push('slow');
      });
      const tick = scheduler.define('event', 'tick').named('ticker').maxRetries(0);
      const job = await runJob(scheduler, tick.dispatch());
      assert.deepEqual([job.status, job.error?.message, finished], ['FAILED', 'boom', ['slow']]);
    });

    it('works for stored schedules [D2]', async () => {
      const received: unknown[] = [];
      const job = await runStoredSchedule(database, 'event', { event: 'tick', data: 1 }, {}, (scheduler) =>
        scheduler.channel.on('tick', (data) => received.push(data)),
      );
      assert.deepEqual([job.status, received], ['COMPLETED', [1]]);
    });
  });

  it('can be replaced by a handler of the application with the same name [D2]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('url', (payload: unknown) => ['mine', payload]);
    const dispatched = await runJob(scheduler, scheduler.dispatch('url', 'x'));
    assert.deepEqual(dispatched.result, ['mine', 'x']);
    const defined = scheduler.define('url', 'y').named('ping');
    assert.deepEqual((await runJob(scheduler, defined.dispatch())).result, ['mine', 'y']);
  });

  it('do not prevent define() with a task type of the application [D1]', async () => {
    const { scheduler } = manualScheduler(database);
    scheduler.registerHandler('sendEmail', (payload: { to: string }) => `sent to ${payload.to}`);
    const welcome = scheduler.define('sendEmail', { to: 'ada' }).named('welcome').daily();
    const job = await runJob(scheduler, welcome.dispatch());
    assert.deepEqual([job.taskType, job.result, job.nextRunAt], ['welcome', 'sent to ada', START]);
  });
});

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { runProgram } from '../../../src/cli/program.js';
import {
  runChronos,
  CommandProcess,
  killCommands,
  cleanEnvironment,
  MAIN,
  ROOT,
} from '../../support/chronos-command.js';
import { runChronosInProcess, FakeTerminal } from '../../support/fake-terminal.js';
import { useSharedDatabase } from '../../support/shared-database.js';
import { waitUntil } from '../../support/wait-until.js';

describe('chronos commands that keep running', () => {
  const db = useSharedDatabase();
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'chronos-cli-'));
  });
  afterEach(async () => {
    await killCommands();
    await rm(folder, { recursive: true });
  });
  const env = (more: Record<string, string> = {}) => ({ MONGODB_URI: db.uri, LOG_FORMAT: 'json', ...more });

  it('work serves its queues and exits with 0 on SIGTERM; status, queues and workers show it [J14]', async () => {
    const words = ['work', '--queues', 'mail,other', '--concurrency', '3'];
    const worker = new CommandProcess(
      [...words, '--handlers', 'dist/examples/handlers.js'],
      env({ WORKER_ID: 'w1' }),
    );
    await worker.waitForOutput(/"state":"Running"/);
    const scheduler = db.scheduler();
    const handle = await scheduler.dispatch(
      'sendEmail',
      { to: 'ada@example.org', subject: 'x' },
      { queue: 'mail' },
    );
    assert.equal((await handle.wait({ timeout: '60s' })).status, 'COMPLETED');
    await scheduler.dispatch('sendEmail', null, { queue: 'nobody' });
    const [status, json, queues, workers, top] = await Promise.all([
      runChronos(['status'], env()),
      runChronos(['status', '--json'], env()),
      runChronos(['queues', 'list', '--json'], env()),
      runChronos(['workers', 'list'], env()),
      // Without a terminal, top prints once and exits.
      runChronos(['top'], env()),
    ]);
    for (const { code, stdout } of [status, top]) {
      assert.equal(code, 0);
      // The busy slots are those of the last heartbeat, which may have been during the job.
      assert.match(stdout, /2 jobs stored, 1 waiting; [01] of 3 slots busy, 1 live worker\n/);
      assert.match(stdout, /completed 1/);
      assert.match(stdout, /^nobody +1 +\w+ +0 +0 +0 +0 +0 +– +0$/m);
      assert.match(stdout, /^w1 +Running +[01]\/3/m);
    }
    const { totals } = JSON.parse(json.stdout) as { totals: Record<string, unknown> };
    assert.deepEqual(
      [totals['waiting'], totals['completed']],
      [
        { count: 1, atLeast: false },
        { count: 1, atLeast: false },
      ],
    );
    const names = (JSON.parse(queues.stdout) as { items: { queue: string }[] }).items.map(
      ({ queue }) => queue,
    );
    assert.deepEqual(names, ['mail', 'nobody', 'other']);
    assert.match(workers.stdout, /w1 +Running +[01]\/3 .*mail, other/);
    worker.signal('SIGTERM');
    assert.equal(await worker.exited, 0);
  });

  it('run executes one pass and reports every result; a dry run writes nothing', async () => {
    const passes = env({ SCHEDULES: 'good,bad,queued' });
    const run = (...more: string[]) =>
      runChronos(['run', '--handlers', 'test/fixtures/schedules.mjs', '--json', ...more], passes);
    const [dry, wrong] = await Promise.all([
      run('--dry-run', '--at', '2030-01-01 08:00'),
      run('--at', 'noon'),
    ]);
    assert.equal(dry.code, 0);
    const { at, entries } = JSON.parse(dry.stdout) as { at: string; entries: { name: string }[] };
    assert.equal(at, '2030-01-01T08:00:00.000Z');
    assert.deepEqual(
      entries.map(({ name }) => name),
      ['good', 'bad', 'queued'],
    );
    assert.equal(await db.collections.schedules.countDocuments(), 0);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /noon/);

    await run();
    await db.makeSchedulesDue(3_600_000);
    const { code, stdout } = await run('--batch', '0');
    assert.equal(code, 4);
    const report = JSON.parse(stdout) as { failed: number; entries: { name: string; result: string }[] };
    assert.deepEqual(
      report.entries.map(({ name, result }) => `${name} ${result}`),
      ['good run', 'bad failed', 'queued enqueued'],
    );
    assert.equal(report.failed, 1);
  });

  it('daemon runs until it is stopped', async () => {
    const words = ['daemon', '--interval', '200ms', '--handlers', 'test/fixtures/schedules.mjs'];
    const daemon = new CommandProcess(words, env({ SCHEDULES: 'second' }));
    await waitUntil(
      'a job is completed',
      async () => (await db.collections.jobs.countDocuments({ status: 'COMPLETED' })) > 0,
    );
    daemon.signal('SIGTERM');
    assert.equal(await daemon.exited, 0);
    assert.match(daemon.output, /daemon ended after \d+ ticks/);
  });

  for (const words of [['run'], ['daemon', '--interval', '200ms']]) {
    it(`${words[0]} exits with 1 on SIGTERM if it leaves work behind, and names the job [J17]`, async () => {
      const variables = env({ SCHEDULES: 'stubborn', SHUTDOWN_GRACE: '1s' });
      const handlers = ['--handlers', 'test/fixtures/schedules.mjs'];
      assert.equal((await runChronos(['run', ...handlers], variables)).code, 0);
      await db.makeSchedulesDue(3_600_000);
      const journal = db.connection.collection('journal');
      await journal.deleteMany({});
      const command = new CommandProcess([...words, ...handlers], variables);
      await waitUntil(
        'the handler has started',
        async () => (await journal.countDocuments({ kind: 'start' })) === 1,
      );
      command.signal('SIGTERM');
      assert.equal(await command.exited, 1, command.output);
      assert.match(command.output, /stubborn was left unfinished/);
    });
  }

  it('dev restarts when handlers change, and waits for a change when they are broken', async () => {
    const handlers = path.join(folder, 'handlers.mjs');
    const write = (body: string) => writeFile(handlers, body);
    const scheduler = db.scheduler();
    const resultOf = async () =>
      (await (await scheduler.dispatch('version')).wait({ timeout: '60s' })).result;
    await write('export const version = () => 1;');
    const dev = new CommandProcess(['dev', '--handlers', handlers], env());
    await dev.waitForOutput(/"state":"Running"/);
    assert.equal(await resultOf(), 1);
    await write('export const version = () => {');
    await dev.waitForOutput(
      /handlers\.mjs changed, restarting[\s\S]*exited with code 2; waiting for a change/,
    );
    await write('export const version = () => 2;');
    assert.equal(await resultOf(), 2);
    dev.signal('SIGINT');
    assert.equal(await dev.exited, 0);
    const [withoutHandlers, missingFolder] = await Promise.all([
      runChronosInProcess(['dev'], env()),
      runChronosInProcess(['dev', '--handlers', handlers, '--watch', path.join(folder, 'none')], env()),
    ]);
    assert.deepEqual([withoutHandlers.code, missingFolder.code], [2, 2]);
    assert.match(withoutHandlers.stderr, /--handlers or HANDLERS/);
    assert.match(missingFolder.stderr, /cannot be watched/);
  });

  it('jobs tail shows attempts as they end until it is stopped', async () => {
    const scheduler = db.scheduler();
    scheduler.registerHandler('first', () => 1).registerHandler('second', () => 2);
    await scheduler.dispatch('first');
    await scheduler.run();
    const tail = new CommandProcess(['jobs', 'tail', '--interval', '250ms'], env());
    await tail.waitForOutput(/completed {2}first /);
    await scheduler.dispatch('second');
    await scheduler.run();
    await tail.waitForOutput(/completed {2}second /);
    tail.signal('SIGINT');
    assert.equal(await tail.exited, 0);
    assert.equal(tail.output.split('\n').length, 3);
  });

  it('top redraws a terminal in color until q is pressed, and respects NO_COLOR', async () => {
    await db.scheduler().dispatch('waits', null, { queue: '\u001b!' });
    const terminal = new FakeTerminal({ MONGODB_URI: db.uri });
    const ended = runProgram(['top', '--interval', '250ms'], terminal.host);
    await waitUntil('the screen was drawn three times', () =>
      Promise.resolve(terminal.stdout.seen.split('\u001b[H').length > 3),
    );
    terminal.stdin.write('q');
    assert.equal(await ended, 0);
    const { seen } = terminal.stdout;
    assert.ok(seen.startsWith('\u001b[?1049h\u001b[?25l'));
    assert.ok(seen.endsWith('\u001b[?25h\u001b[?1049l'));
    assert.ok(seen.includes('\u001b[34mwaiting\u001b[0m 1'));
    assert.ok(seen.includes('\\x1b!'));
    assert.ok(!seen.includes('\u001b!'));
    const frame = seen.split('\u001b[H')[1] ?? '';
    // eslint-disable-next-line no-control-regex
    for (const line of frame.replace(/\u001b\[[0-9;]*[A-Za-z]/g, '').split('\r\n'))
      assert.ok(line.length <= 80, line);

    const plain = new FakeTerminal({ MONGODB_URI: db.uri, NO_COLOR: '1' });
    assert.equal(await runProgram(['status'], plain.host), 0);
    assert.ok(!plain.stdout.seen.includes('\u001b'));
  });

  it('commands ask for confirmation on a terminal before they change many jobs, and change nothing after a no', async () => {
    const scheduler = db.scheduler();
    const { id } = await scheduler.dispatch('waits');
    const confirm = async (words: string[], question: RegExp, answer: string) => {
      const terminal = new FakeTerminal({ MONGODB_URI: db.uri });
      const listeners = process.listenerCount('SIGINT');
      const ended = runProgram(words, terminal.host);
      await waitUntil('the question is shown', () => Promise.resolve(terminal.stderr.seen.includes('[y/N]')));
      assert.match(terminal.stderr.seen, question);
      assert.equal(process.listenerCount('SIGINT'), listeners, 'Ctrl-C ends the process at the question');
      terminal.stdin.write(answer);
      return { code: await ended, output: terminal.stdout.seen };
    };
    const cancel = (answer: string) =>
      confirm(['jobs', 'cancel', '--type', 'waits'], /This will cancel 1 job\. Continue\?/, answer);
    assert.deepEqual(await cancel('n\n'), { code: 1, output: 'No change made.\n' });
    assert.equal((await scheduler.getJob(id))?.status, 'SCHEDULED');
    assert.deepEqual(await cancel('y\n'), { code: 0, output: '1 of 1 jobs cancelled.\n' });
    assert.equal((await scheduler.getJob(id))?.status, 'CANCELLED');

    await scheduler.addSchedule({ id: 's', taskType: 'waits', every: '1h', startsAt: '2026-01-01' });
    const words = ['schedules', 'backfill', 's', '--from', '2026-01-01', '--to', '2026-01-01 05:00'];
    const backfill = (answer: string) => confirm(words, /This will create 6 jobs .* Continue\?/, answer);
    assert.deepEqual(await backfill('n\n'), { code: 1, output: 'No change made.\n' });
    const output = '6 occurrences, 0 of them already had a job.\n';
    assert.deepEqual(await backfill('y\n'), { code: 0, output });
  });

  if (existsSync('/usr/bin/script'))
    it('top fits the width of a real terminal and ends with q', async () => {
      const command = `stty cols 70 rows 20; ${process.execPath} ${MAIN} top --interval 250ms; echo "exit $?"`;
      const child = spawn('/usr/bin/script', ['-qec', command, '/dev/null'], {
        cwd: ROOT,
        env: cleanEnvironment({ MONGODB_URI: db.uri, TERM: 'xterm-256color' }),
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      const output = text(child.stdout);
      child.stdout.on('data', (chunk: Buffer) => {
        if (chunk.toString().includes('q to quit')) child.stdin.write('q');
      });
      await once(child, 'exit');
      const shown = await output;
      const parts = ['\u001b[?1049h', '\u001b[1mChronos\u001b[0m', '\u001b[?1049l', 'exit 0'];
      const positions = parts.map((part) => shown.indexOf(part));
      assert.ok(!positions.includes(-1), shown);
      assert.deepEqual(
        positions,
        positions.toSorted((x, y) => x - y),
      );
    });
});

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { COMMANDS, GROUPS } from '../../../src/cli/commands/all.js';
import { EXIT_CODES } from '../../../src/process/exit.js';
import { runChronos } from '../../support/chronos-command.js';
import { runChronosInProcess } from '../../support/fake-terminal.js';
import { useSharedDatabase } from '../../support/shared-database.js';

const UNREACHABLE = 'mongodb://ada:secret-word@127.0.0.1:1/chronos';

describe('chronos usage, settings and exit codes', () => {
  const db = useSharedDatabase();
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'chronos-cli-'));
  });
  after(() => rm(folder, { recursive: true }));

  async function fileWith(text: string): Promise<string> {
    const file = path.join(folder, `${Math.random()}`);
    await writeFile(file, text);
    return file;
  }

  it('every command has help with examples', async () => {
    const [main, list, exitCodes, page, version] = await Promise.all([
      runChronos(['--help']),
      runChronosInProcess(['jobs', 'list', '--help'], {}),
      runChronosInProcess(['help', 'exit-codes', '--json'], {}),
      runChronosInProcess(['help', 'schedules', 'add'], {}),
      runChronos(['--version']),
    ]);
    for (const { code } of [main, list, exitCodes, page, version]) assert.equal(code, 0);
    for (const group of Object.keys(GROUPS)) assert.match(main.stdout, new RegExp(`^ {2}${group} `, 'm'));
    assert.match(
      list.stdout,
      /--state <state>[\s\S]*Global Options:[\s\S]*--json[\s\S]*Examples:\n {2}\$ chronos jobs list/,
    );
    assert.match(page.stdout, /chronos schedules add \[options\] <taskType>/);
    assert.deepEqual(JSON.parse(exitCodes.stdout), { exitCodes: EXIT_CODES });
    for (const { name, examples } of COMMANDS)
      assert.ok(examples.length > 0 && examples.every((example) => example.startsWith(name)), name);
  });

  it('a wrong command or option exits with 2 and suggests the right one', async () => {
    const wrong = (...words: string[]) => runChronosInProcess(words, { MONGODB_URI: db.uri });
    const [command, sub, option, state, help, group, missing, limit, between] = await Promise.all([
      runChronos(['statsu'], { MONGODB_URI: db.uri }),
      wrong('jobs', 'lst'),
      wrong('jobs', 'list', '--quue', 'mail'),
      wrong('jobs', 'list', '--state', 'runnin'),
      wrong('help', 'jbos'),
      wrong('jobs'),
      wrong('dispatch'),
      wrong('jobs', 'list', '--limit', '1000'),
      wrong('schedules', 'preview', '--every', '1h', '--between', '9-17'),
    ]);
    for (const { code } of [command, sub, option, state, help, group, missing, limit, between])
      assert.equal(code, 2);
    assert.match(command.stderr, /unknown command 'statsu'\n\(Did you mean status\?\)/);
    assert.match(sub.stderr, /Did you mean list\?/);
    assert.match(option.stderr, /Did you mean --queue\?/);
    assert.match(state.stderr, /did you mean 'running'/);
    assert.match(help.stderr, /did you mean 'jobs'/);
    assert.match(group.stderr, /Usage: chronos jobs/);
    assert.match(
      missing.stderr,
      /missing required argument 'taskType'\nAdd --help to see the options of the command/,
    );
    assert.match(limit.stderr, /whole number from 1 to 200/);
    assert.match(between.stderr, /'9-17' is invalid. It must be two times like '09:00' and '17:30'/);
  });

  it('names the group of a command that was typed without it', async () => {
    const { code, stderr } = await runChronosInProcess(['explain', 'x'], {});
    assert.equal(code, 2);
    assert.match(stderr, /unknown command 'explain'[^]*Did you mean `chronos jobs explain`\?/);
    assert.doesNotMatch((await runChronosInProcess(['nonsense'], {})).stderr, /Did you mean/);
  });

  it('an interval below 250 ms is rejected', async () => {
    const env = { MONGODB_URI: db.uri };
    const rejected = await Promise.all([
      runChronosInProcess(['top', '--interval', '0'], env),
      runChronosInProcess(['jobs', 'tail', '--no-follow', '--interval', '249ms'], env),
    ]);
    for (const { code, stderr } of rejected) {
      assert.equal(code, 2);
      assert.match(stderr, /--interval <duration>.*at least 250 ms/);
    }
    assert.equal(
      (await runChronosInProcess(['jobs', 'tail', '--no-follow', '--interval', '250ms'], env)).code,
      0,
    );
  });

  it('the connection string comes from the environment or a file and is never shown', async () => {
    const [none, file, variable, noFile, notUri, argument, unreachable] = await Promise.all([
      runChronos(['status']),
      runChronos(['status', '--json', '--uri-file', await fileWith(`${db.uri}\n`)]),
      // MONGODB_URI_FILE is for cron, Docker and Kubernetes; --uri-file overrides it.
      runChronos(['status', '--json', '--uri-file', await fileWith(db.uri)], {
        MONGODB_URI_FILE: path.join(folder, 'none'),
      }).then(async (first) => ({
        first,
        second: await runChronos(['run', '--json'], { MONGODB_URI_FILE: await fileWith(db.uri) }),
      })),
      runChronos(['status', '--uri-file', path.join(folder, 'none')]),
      runChronos(['status', '--uri-file', await fileWith('postgres://ada:secret-word@host/db')]),
      runChronos(['status', `--uri=${UNREACHABLE}`]),
      runChronos(['status', '--uri-file', await fileWith(UNREACHABLE)], { CONNECT_TIMEOUT: '500ms' }),
    ]);
    assert.deepEqual([none.code, file.code, noFile.code, notUri.code, argument.code], [2, 0, 2, 2, 2]);
    assert.deepEqual([variable.first.code, variable.second.code], [0, 0], variable.second.stderr);
    assert.match(none.stderr, /MONGODB_URI is missing.*--uri-file/);
    assert.deepEqual((JSON.parse(file.stdout) as { queues: unknown[] }).queues, []);
    assert.match(noFile.stderr, /ENOENT/);
    assert.match(notUri.stderr, /must be a connection string/);
    assert.equal(unreachable.code, 3);
    assert.match(unreachable.stderr, /MongoDB could not be reached/);
    for (const { stdout, stderr } of [notUri, argument, unreachable])
      assert.doesNotMatch(stdout + stderr, /secret-word/);
  });

  it('install creates the collections, and doctor exits with 1 and advice when something is wrong', async () => {
    const env = { MONGODB_URI: db.uri };
    await db.scheduler().dispatch('waits');
    const [installed, unhealthy] = await Promise.all([
      runChronos(['install', '--json'], env),
      runChronos(['doctor'], env),
    ]);
    assert.deepEqual(JSON.parse(installed.stdout), { installed: true });
    assert.equal(unhealthy.code, 1);
    assert.match(
      unhealthy.stdout,
      /✖ workersAlive: No worker is alive, and jobs are due\.\n {2}→ Start a worker\./,
    );
    await db.collections.jobs.deleteMany();
    const healthy = await runChronos(['doctor', '--json'], env);
    assert.equal(healthy.code, 0, healthy.stdout);
    assert.equal((JSON.parse(healthy.stdout) as { isWell: boolean }).isWell, true);
  });
});

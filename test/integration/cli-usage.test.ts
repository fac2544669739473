import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { COMMANDS, GROUPS } from '../../src/cli/commands.js';
import { EXIT_CODES } from '../../src/process/exit.js';
import { chronos } from '../support/command.js';
import { useSharedDatabase } from '../support/shared-database.js';

const UNREACHABLE = 'mongodb://ada:secret-word@127.0.0.1:1/chronos';

describe('chronos: usage, settings and exit codes', () => {
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

  it('helps with every command, with examples', async () => {
    const [main, list, exitCodes, page, version] = await Promise.all([
      chronos(['--help']),
      chronos(['jobs', 'list', '--help']),
      chronos(['help', 'exit-codes', '--json']),
      chronos(['help', 'schedules', 'add']),
      chronos(['--version']),
    ]);
    for (const { code } of [main, list, exitCodes, page, version]) assert.equal(code, 0);
    for (const group of Object.keys(GROUPS)) assert.match(main.stdout, new RegExp(`^ {2}${group} `, 'm'));
    assert.match(
      list.stdout,
      /--status <status>[\s\S]*Global Options:[\s\S]*--json[\s\S]*Examples:\n {2}\$ chronos jobs list/,
    );
    assert.match(page.stdout, /chronos schedules add \[options\] <taskType>/);
    assert.deepEqual(JSON.parse(exitCodes.stdout), { exitCodes: EXIT_CODES });
    for (const { name, examples } of COMMANDS)
      assert.ok(examples.length > 0 && examples.every((example) => example.startsWith(name)), name);
  });

  it('exits with 2 and guesses what was meant', async () => {
    const wrong = (...words: string[]) => chronos(words, { MONGODB_URI: db.uri });
    const [command, sub, option, status, help, group, missing, limit, between] = await Promise.all([
      wrong('statsu'),
      wrong('jobs', 'lst'),
      wrong('jobs', 'list', '--quue', 'mail'),
      wrong('jobs', 'list', '--status', 'runnin'),
      wrong('help', 'jbos'),
      wrong('jobs'),
      wrong('dispatch'),
      wrong('jobs', 'list', '--limit', '1000'),
      wrong('schedules', 'preview', '--every', '1h', '--between', '9-17'),
    ]);
    for (const { code } of [command, sub, option, status, help, group, missing, limit, between])
      assert.equal(code, 2);
    assert.match(command.stderr, /unknown command 'statsu'\n\(Did you mean status\?\)/);
    assert.match(sub.stderr, /Did you mean list\?/);
    assert.match(option.stderr, /Did you mean --queue\?/);
    assert.match(status.stderr, /did you mean 'RUNNING'/);
    assert.match(help.stderr, /did you mean 'jobs'/);
    assert.match(group.stderr, /Usage: chronos jobs/);
    assert.match(
      missing.stderr,
      /missing required argument 'taskType'\nAdd --help to see what the command takes/,
    );
    assert.match(limit.stderr, /whole number from 1 to 200/);
    assert.match(between.stderr, /'9-17' is invalid. It must be two times .* 09:00,17:30/);
  });

  it('refuses to look without a pause', async () => {
    const env = { MONGODB_URI: db.uri };
    const refused = await Promise.all([
      chronos(['top', '--interval', '0'], env),
      chronos(['jobs', 'tail', '--no-follow', '--interval', '249ms'], env),
    ]);
    for (const { code, stderr } of refused) {
      assert.equal(code, 2);
      assert.match(stderr, /--interval <duration>.*at least 250 ms/);
    }
    assert.equal((await chronos(['jobs', 'tail', '--no-follow', '--interval', '250ms'], env)).code, 0);
  });

  it('takes MongoDB from the environment or a file, and never shows what is in it', async () => {
    const [none, file, variable, noFile, notUri, argument, unreachable] = await Promise.all([
      chronos(['status']),
      chronos(['status', '--json', '--uri-file', await fileWith(`${db.uri}\n`)]),
      // As cron, Docker and Kubernetes hand it over; what the command line names comes first.
      chronos(['status', '--json', '--uri-file', await fileWith(db.uri)], {
        MONGODB_URI_FILE: path.join(folder, 'none'),
      }).then(async (first) => ({
        first,
        second: await chronos(['run', '--json'], { MONGODB_URI_FILE: await fileWith(db.uri) }),
      })),
      chronos(['status', '--uri-file', path.join(folder, 'none')]),
      chronos(['status', '--uri-file', await fileWith('postgres://ada:secret-word@host/db')]),
      chronos(['status', `--uri=${UNREACHABLE}`]),
      chronos(['status', '--uri-file', await fileWith(UNREACHABLE)], { CONNECT_TIMEOUT: '500ms' }),
    ]);
    assert.deepEqual([none.code, file.code, noFile.code, notUri.code, argument.code], [2, 0, 2, 2, 2]);
    assert.deepEqual([variable.first.code, variable.second.code], [0, 0], variable.second.stderr);
    assert.match(none.stderr, /MONGODB_URI is missing.*--uri-file/);
    assert.deepEqual((JSON.parse(file.stdout) as { queues: unknown[] }).queues, []);
    assert.match(noFile.stderr, /ENOENT/);
    assert.match(notUri.stderr, /must have nothing in it but a connection string/);
    assert.equal(unreachable.code, 3);
    assert.match(unreachable.stderr, /MongoDB could not be reached/);
    for (const { stdout, stderr } of [notUri, argument, unreachable])
      assert.doesNotMatch(stdout + stderr, /secret-word/);
  });

  it('installs, and doctor exits with 1 when something is wrong, with what to do', async () => {
    const env = { MONGODB_URI: db.uri };
    await db.scheduler().dispatch('waits');
    const [installed, sick] = await Promise.all([
      chronos(['install', '--json'], env),
      chronos(['doctor'], env),
    ]);
    assert.deepEqual(JSON.parse(installed.stdout), { installed: true });
    assert.equal(sick.code, 1);
    assert.match(
      sick.stdout,
      /✖ workersAlive: No worker is alive, and jobs are due\.\n {2}→ Start a worker\./,
    );
    await db.collections.jobs.deleteMany();
    const well = await chronos(['doctor', '--json'], env);
    assert.equal(well.code, 0, well.stdout);
    assert.equal((JSON.parse(well.stdout) as { isWell: boolean }).isWell, true);
  });
});

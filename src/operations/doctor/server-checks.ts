import type { CollectionState } from '../../store/schema/inspect.js';
import { LAYOUT_VERSION } from '../../store/schema/installation.js';
import { type Checks, error, listNames, MAX_CLOCK_ERROR_MS, ok, warning } from './check.js';

const MIN_MAJOR_VERSION = 6;
const INSTALL =
  'Run `chronos install`, or call install() in a program: it creates what is missing. A worker does the same when it starts.';

export const serverChecks: Checks = {
  async serverVersion({ server }) {
    const { version, driver } = await server();
    const finding = `MongoDB ${version}, driver ${driver}.`;
    return Number.parseInt(version, 10) >= MIN_MAJOR_VERSION
      ? ok(finding)
      : error(finding, `Chronos needs MongoDB ${MIN_MAJOR_VERSION}.0 or newer: upgrade the server.`);
  },

  async writeConcern({ server }) {
    const { writeConcern: concern, topology, members, arbiters } = await server();
    if (concern.w !== 'majority' || !concern.journal) {
      const finding = `Writes are acknowledged with ${JSON.stringify(concern)}.`;
      return error(finding, 'Jobs are durable only with journaled majority writes: please report this.');
    }
    if (arbiters > 0) {
      const finding = `The replica set has ${members} data-bearing members and ${arbiters} arbiters.`;
      const advice =
        'If a data-bearing member fails, writes may find no majority: use data-bearing members instead of arbiters.';
      return warning(finding, advice);
    }
    const isSingleServer = topology === 'standalone' || (topology === 'replicaSet' && members === 1);
    return ok(
      isSingleServer
        ? 'Writes are journaled and acknowledged by the only server.'
        : 'Writes are journaled and acknowledged by a majority.',
    );
  },

  async changeStreams({ server }, { store }) {
    const { topology } = await server();
    if (topology === 'standalone') {
      const advice =
        'Make it a replica set (one member is enough): then workers learn of new jobs within milliseconds.';
      return warning('A standalone server has no change streams: workers find jobs by polling.', advice);
    }
    const streamError = await store.findStreamError();
    if (streamError === null) {
      return ok(
        topology === 'sharded'
          ? 'Workers find new jobs by polling: through mongos, a change stream reports them up to 9 s late.'
          : 'Workers learn of new jobs through a change stream.',
      );
    }
    const advice =
      'A worker with the same rights finds jobs only by polling: grant the action changeStream (deploy/mongodb/roles.json).';
    return warning(`This user cannot open a change stream: ${streamError}.`, advice);
  },

  async installation(_, { store }) {
    const installed = await store.readInstallation();
    if (installed === null)
      return error('No layout version is stored: `install` has never completed in this database.', INSTALL);
    const { layoutVersion, packageVersion } = installed;
    const finding = `Layout version ${layoutVersion}, installed by chronos-worker ${packageVersion}.`;
    if (layoutVersion < LAYOUT_VERSION) return error(finding, INSTALL);
    return layoutVersion === LAYOUT_VERSION
      ? ok(finding)
      : error(finding, `This process supports up to ${LAYOUT_VERSION}: update chronos-worker.`);
  },

  async indexes({ collections }) {
    const states = await collections();
    const missing = qualifiedNames(states, ({ missing: names }) => names);
    const different = qualifiedNames(states, ({ different: names }) => names);
    const foreign = qualifiedNames(states, ({ foreign: names }) => names);
    if (missing.length > 0) return error(`Indexes are missing: ${listNames(missing)}.`, INSTALL);
    if (different.length > 0) {
      const advice = 'Drop them and run install(): it does not change existing indexes.';
      return error(`Indexes differ from those that Chronos creates: ${listNames(different)}.`, advice);
    }
    if (foreign.length > 0) {
      const advice = 'Each one slows down every write: drop those that you do not need.';
      return warning(`There are indexes that Chronos does not use: ${listNames(foreign)}.`, advice);
    }
    return ok('All indexes exist.');
  },

  async validators({ collections }) {
    const without = (await collections())
      .filter(({ hasValidator }) => !hasValidator)
      .map(({ collection }) => collection);
    if (without.length === 0) return ok('All collections have their validators.');
    return error(`Collections without a current validator: ${listNames(without)}.`, INSTALL);
  },

  async expiry({ collections }) {
    const growing = (await collections())
      .filter(({ lacksTtlIndex }) => lacksTtlIndex)
      .map(({ collection }) => collection);
    if (growing.length === 0) return ok('MongoDB removes expired documents.');
    const finding = `Expired documents are never removed from: ${listNames(growing)} (the index 'expiry' is missing).`;
    return error(finding, INSTALL);
  },

  async ownClock({ server }) {
    const { localTime, requestedAt, repliedAt } = await server();
    const offset = Math.round((requestedAt + repliedAt) / 2 - localTime.getTime());
    const finding = `The clock of this machine is ${Math.abs(offset)} ms ${offset < 0 ? 'behind' : 'ahead of'} the database's.`;
    // The measurement is only as precise as its round trip.
    if (Math.abs(offset) <= MAX_CLOCK_ERROR_MS + (repliedAt - requestedAt)) return ok(finding);
    const advice =
      "Jobs use the database's clock and are not affected, but the times in log lines are. Synchronize both with NTP.";
    return warning(finding, advice);
  },
};

function qualifiedNames(
  states: readonly CollectionState[],
  names: (state: CollectionState) => string[],
): string[] {
  return states.flatMap((state) => names(state).map((name) => `${state.collection}.${name}`));
}

import type { CollectionState } from '../../store/schema/inspect.js';
import { type Check, error, listNames, ok, warning } from './check.js';

const MIN_MAJOR_VERSION = 6;

export const serverVersion: Check = {
  name: 'serverVersion',
  async run({ server }) {
    const { version, driver } = await server();
    const finding = `MongoDB ${version}, driver ${driver}.`;
    return Number.parseInt(version, 10) >= MIN_MAJOR_VERSION
      ? ok(finding)
      : error(finding, `Chronos needs MongoDB ${MIN_MAJOR_VERSION}.0 or newer: upgrade the server.`);
  },
};

export const writeConcern: Check = {
  name: 'writeConcern',
  async run({ server }) {
    const { writeConcern: concern, topology, members, arbiters } = await server();
    if (concern.w !== 'majority' || !concern.journal) {
      const finding = `Writes are acknowledged with ${JSON.stringify(concern)}.`;
      return error(finding, 'Jobs are durable only with journaled majority writes: please report this.');
    }
    if (arbiters > 0) {
      const finding = `The replica set has ${members} data-bearing members and ${arbiters} that only vote.`;
      return warning(
        finding,
        'If a data-bearing member fails, writes may find no majority: use data-bearing members instead of arbiters.',
      );
    }
    const isSingleServer = topology === 'standalone' || (topology === 'replicaSet' && members === 1);
    return ok(
      isSingleServer
        ? 'Writes are journaled and acknowledged by the only server.'
        : 'Writes are journaled and acknowledged by a majority.',
    );
  },
};

export const changeStreams: Check = {
  name: 'changeStreams',
  async run({ server }, { store }) {
    const { topology } = await server();
    if (topology !== 'standalone') {
      const refusal = await store.findStreamError();
      if (refusal === null) return ok('Workers learn of new jobs through a change stream.');
      return warning(
        `This user cannot open a change stream: ${refusal}.`,
        'A worker with the same rights finds jobs only by polling: grant the action changeStream (deploy/mongodb/roles.json).',
      );
    }
    const advice =
      'Make it a replica set (one member is enough): then workers learn of new jobs within milliseconds.';
    return warning('A standalone server has no change streams: workers find jobs by polling.', advice);
  },
};

const INSTALL =
  'Run `chronos install`, or call install() in a program: it creates what is missing. A worker does the same when it starts.';

export const indexes: Check = {
  name: 'indexes',
  async run({ collections }) {
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
};

export const validators: Check = {
  name: 'validators',
  async run({ collections }) {
    const without = (await collections())
      .filter(({ hasValidator }) => !hasValidator)
      .map(({ collection }) => collection);
    return without.length === 0
      ? ok('All collections have their validators.')
      : error(
          `Collections are missing, or their validator is missing or old: ${listNames(without)}.`,
          INSTALL,
        );
  },
};

export const expiry: Check = {
  name: 'expiry',
  async run({ collections }) {
    const growing = (await collections())
      .filter(({ growsWithoutEnd }) => growsWithoutEnd)
      .map(({ collection }) => collection);
    return growing.length === 0
      ? ok('MongoDB removes expired documents.')
      : error(
          `Expired documents are never removed from: ${listNames(growing)} (the index 'expiry' is missing).`,
          INSTALL,
        );
  },
};

function qualifiedNames(
  states: readonly CollectionState[],
  names: (state: CollectionState) => string[],
): string[] {
  return states.flatMap((state) => names(state).map((name) => `${state.collection}.${name}`));
}

const MAX_CLOCK_ERROR_MS = 1000;

export const ownClock: Check = {
  name: 'ownClock',
  async run({ server }) {
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

export const workerClocks: Check = {
  name: 'workerClocks',
  async run({ liveWorkers }) {
    const imprecise = (await liveWorkers())
      .filter(({ clockError }) => clockError !== null && clockError > MAX_CLOCK_ERROR_MS)
      .map(({ id, clockError }) => `${id} (${Math.round(clockError ?? 0)} ms)`);
    if (imprecise.length === 0) return ok("All live workers have measured the database's time precisely.");
    const advice =
      'Their round trips to the database are slow: check the network, and the load of the workers and the database.';
    return warning(`Workers know the database's time only imprecisely: ${listNames(imprecise)}.`, advice);
  },
};

import { error, ok, warning, type Check } from './check.js';

const OLDEST = 6;

export const serverVersion: Check = {
  name: 'serverVersion',
  async examine({ server }) {
    const { version, driver } = await server();
    const finding = `MongoDB ${version}, driver ${driver}.`;
    return Number.parseInt(version, 10) >= OLDEST
      ? ok(finding)
      : error(finding, `Chronos needs MongoDB ${OLDEST}.0 or newer: upgrade the server.`);
  },
};

export const writeConcern: Check = {
  name: 'writeConcern',
  async examine({ server }) {
    const { writeConcern: concern, topology, members, arbiters } = await server();
    if (concern.w !== 'majority' || !concern.journal) {
      const finding = `Writes are acknowledged with ${JSON.stringify(concern)}.`;
      return error(finding, 'Jobs are only durable with a journalled majority: report this.');
    }
    if (arbiters > 0) {
      const finding = `The replica set has ${members} members with data and ${arbiters} that only vote.`;
      return warning(
        finding,
        'When one with data fails, no majority acknowledges writes: use a third with data.',
      );
    }
    const isAlone = topology === 'standalone' || (topology === 'replicaSet' && members === 1);
    return ok(
      isAlone
        ? 'Writes are acknowledged by a journalled majority, which is the one server there is.'
        : 'Writes are acknowledged by a journalled majority.',
    );
  },
};

export const changeStreams: Check = {
  name: 'changeStreams',
  async examine({ server }, { store }) {
    const { topology } = await server();
    if (topology !== 'standalone') {
      const refusal = await store.refusedStream();
      if (refusal === null) return ok('Workers hear of jobs through a change stream.');
      return warning(
        `This user cannot open a change stream: ${refusal}.`,
        'Workers whose user may not either find jobs by polling: grant the action changeStream (deploy/mongodb/roles.json).',
      );
    }
    const advice =
      'Make it a replica set, of one member if need be: then workers hear of jobs within milliseconds.';
    return warning('A standalone server has no change streams: workers find jobs by polling.', advice);
  },
};

import { ok, some, warning, type Check } from './check.js';

/** Milliseconds. */
const TOLERATED = 1000;

export const ownClock: Check = {
  name: 'ownClock',
  async examine({ server }) {
    const { localTime, askedAt, answeredAt } = await server();
    const offset = Math.round((askedAt + answeredAt) / 2 - localTime.getTime());
    const finding = `The clock of this machine is ${Math.abs(offset)} ms ${offset < 0 ? 'behind' : 'ahead of'} the database's.`;
    // The reading itself is only as good as its round trip.
    if (Math.abs(offset) <= TOLERATED + (answeredAt - askedAt)) return ok(finding);
    const advice =
      "Jobs go by the database's clock and are not affected; log lines are. Synchronise both with NTP.";
    return warning(finding, advice);
  },
};

export const workerClocks: Check = {
  name: 'workerClocks',
  async examine({ liveWorkers }) {
    const vague = (await liveWorkers())
      .filter(({ clockError }) => clockError !== null && clockError > TOLERATED)
      .map(({ id, clockError }) => `${id} (${Math.round(clockError ?? 0)} ms)`);
    if (vague.length === 0) return ok("Live workers know the database's time well.");
    const advice =
      'Their round trips to the database are this slow: look at the network and at the load of both.';
    return warning(`Workers know the database's time only roughly: ${some(vague)}.`, advice);
  },
};

import { ChronosError } from '../domain/errors.js';

/** Several people may change a schedule at once; each tries this often to be the last. */
const MOST_TRIES = 20;

/** Tries until nobody else was first. `attempt` comes to undefined when somebody was. Throws WRONG_STATE. */
export async function untilFirst<T>(scheduleId: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 1; tries <= MOST_TRIES; tries++) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
  }
  throw new ChronosError(
    'WRONG_STATE',
    `the schedule '${scheduleId}' changed ${MOST_TRIES} times while this call looked at it: try again`,
  );
}

import type { CollectionState } from '../../store/inspect.js';
import { error, ok, some, warning, type Check } from './check.js';

const INSTALL =
  'Run `chronos install`, or install() in a program: it makes what is missing. A worker that starts does it too.';

export const indexes: Check = {
  name: 'indexes',
  async examine({ collections }) {
    const states = await collections();
    const missing = named(states, ({ missing: names }) => names);
    const different = named(states, ({ different: names }) => names);
    const foreign = named(states, ({ foreign: names }) => names);
    if (missing.length > 0) return error(`Indexes are missing: ${some(missing)}.`, INSTALL);
    if (different.length > 0) {
      const advice = 'Drop them and run install(): an index that is there is left as it is.';
      return error(`Indexes differ from those that Chronos makes: ${some(different)}.`, advice);
    }
    if (foreign.length > 0) {
      const advice = 'Each costs time with every write: drop those that nothing of yours needs.';
      return warning(`There are indexes that Chronos does not use: ${some(foreign)}.`, advice);
    }
    return ok('All indexes are there.');
  },
};

export const validators: Check = {
  name: 'validators',
  async examine({ collections }) {
    const without = (await collections())
      .filter(({ hasValidator }) => !hasValidator)
      .map(({ collection }) => collection);
    return without.length === 0
      ? ok('All collections have their validators.')
      : error(`Collections are missing, or have no validator or an old one: ${some(without)}.`, INSTALL);
  },
};

export const expiry: Check = {
  name: 'expiry',
  async examine({ collections }) {
    const growing = (await collections())
      .filter(({ growsWithoutEnd }) => growsWithoutEnd)
      .map(({ collection }) => collection);
    return growing.length === 0
      ? ok('What has expired is removed by the server.')
      : error(`Nothing is ever removed from: ${some(growing)} (the index 'expiry' is missing).`, INSTALL);
  },
};

function named(states: readonly CollectionState[], names: (state: CollectionState) => string[]): string[] {
  return states.flatMap((state) => names(state).map((name) => `${state.collection}.${name}`));
}

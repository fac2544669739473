// One process under measurement. The benchmark forks it with a role; it answers over the channel.
import { floorRoles } from './floor-roles.js';
import { chronosRoles } from './chronos-roles.js';
import type { Context, FromChild, Role } from './roles.js';

const { role, uri } = JSON.parse(process.argv[2] ?? '{}') as { role: Role; uri: string };

function tell(message: FromChild): void {
  process.send?.(message);
}

/** Resolves when the parent says the word. */
function hear(word: 'go' | 'stop'): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      if (message !== word) return;
      process.off('message', listen);
      resolve();
    };
    process.on('message', listen);
  });
}

const context: Context = {
  uri,
  stopped: hear('stop'),
  ready: () => {
    tell({ kind: 'ready' });
  },
  progress: (done) => {
    tell({ kind: 'progress', done });
  },
};

const go = hear('go');
tell({ kind: 'loaded' });
await go;
const roles = { ...chronosRoles, ...floorRoles };
const report = await (
  roles[role.name] as (context: Context, role: Role) => ReturnType<(typeof roles)['drain']>
)(context, role);
tell({ kind: 'report', report });
process.disconnect();

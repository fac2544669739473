// One measured process. The benchmark forks it with a role, and they exchange messages over the IPC channel.
import { floorRoles } from './floor-roles.js';
import { chronosRoles } from './chronos-roles.js';
import type { Context, FromChild, Role } from './roles.js';

const { role, uri } = JSON.parse(process.argv[2] ?? '{}') as { role: Role; uri: string };

function send(message: FromChild): void {
  process.send?.(message);
}

function waitForMessage(expected: 'go' | 'stop'): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: unknown): void => {
      if (message !== expected) return;
      process.off('message', listen);
      resolve();
    };
    process.on('message', listen);
  });
}

const context: Context = {
  uri,
  stopped: waitForMessage('stop'),
  ready: () => {
    send({ kind: 'ready' });
  },
  progress: (done) => {
    send({ kind: 'progress', done });
  },
};

// The benchmark failed or was interrupted: do not run on without it.
process.once('disconnect', () => process.exit());
const go = waitForMessage('go');
send({ kind: 'loaded' });
await go;
const roles = { ...chronosRoles, ...floorRoles };
const report = await (
  roles[role.name] as (context: Context, role: Role) => ReturnType<(typeof roles)['drain']>
)(context, role);
send({ kind: 'report', report });
process.disconnect();

// Imports point downward only:
//   worker.ts, cli, http, metrics, process → scheduler.ts, parts.ts → dispatch, worker, schedules, built-in, maintenance, operations → store → runtime, config → domain
// src/index.ts is the list of public exports and may name anything.

const domain = '^src/domain/';
const config = '^src/config/';
const runtime = '^src/runtime/';
const store = '^src/store/';
const services = '^src/(dispatch|worker|schedules|built-in|maintenance|operations)/';
const scheduler =
  '^src/(scheduler|schedule-api|job-api|dispatching|run-once|pass-daemon|lifetime|load|parts)\\.ts$';
const adapters = '^src/(cli|http|metrics|process)/';

/** What matches `from` may import of this project only itself and what matches one of `below`. */
function onlyDownward(name, from, ...below) {
  return {
    name,
    comment: 'Imports point downward: see the top of .dependency-cruiser.cjs.',
    severity: 'error',
    from: { path: from },
    to: { pathNot: [from, ...below], dependencyTypes: ['local'] },
  };
}

module.exports = {
  forbidden: [
    onlyDownward('domain-at-the-bottom', domain),
    onlyDownward('config-above-domain', config, domain),
    onlyDownward('runtime-above-domain', runtime, domain),
    onlyDownward('store-above-runtime-and-config', store, runtime, config, domain),
    onlyDownward('services-above-store', services, store, runtime, config, domain),
    onlyDownward('scheduler-above-services', scheduler, services, store, runtime, config, domain),
    onlyDownward('adapters-above-scheduler', adapters, scheduler, services, store, runtime, config, domain),
    {
      name: 'domain-is-pure',
      comment:
        'The domain computes: no I/O. Of Node it may use node:crypto, of packages the parser of cron expressions.',
      severity: 'error',
      from: { path: domain },
      to: {
        pathNot: [domain, '^(node:)?crypto$', '/node_modules/cron-parser/', '^node_modules/cron-parser/'],
      },
    },
    {
      name: 'mongoose-only-in-store',
      comment: 'Only src/store talks to MongoDB.',
      severity: 'error',
      from: { pathNot: store },
      to: { path: '(^|/)node_modules/(mongoose|mongodb)/' },
    },
    {
      name: 'http-loaded-when-used',
      comment:
        'Whoever does not answer over HTTP does not load the server: only for-worker.ts is imported, and it waits.',
      severity: 'error',
      from: { path: '^(worker\\.ts|src/)', pathNot: '^src/http/(?!for-worker)' },
      to: { path: '^src/http/(?!for-worker)', dynamic: false },
    },
    {
      name: 'no-cycles',
      comment: 'A cycle is one module in two files, or a part that belongs elsewhere.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-orphans',
      comment: 'Nothing imports this file. The thread is started by its address.',
      severity: 'error',
      from: {
        orphan: true,
        path: '^src/',
        pathNot: [
          '^src/((http|metrics)/)?index\\.ts$',
          '^src/worker/renewal-thread\\.ts$',
          '^src/cli/main\\.ts$',
        ],
      },
      to: {},
    },
    {
      name: 'resolvable',
      comment: 'This import leads nowhere.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    // Imports of types are dependencies as well.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node', 'default'],
    },
  },
};

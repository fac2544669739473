// Imports point downward only. Each line may import from the lines below it, and from its own folder:
//   cli
//   process
//   http
//   metrics
//   scheduler.ts
//   operations
//   lifecycle
//   schedules, maintenance
//   jobs
//   worker
//   handlers
//   store
//   config, runtime
//   domain
// src/index.ts is the list of public exports and may name anything.

const LAYERS = [
  ['cli'],
  ['process'],
  ['http'],
  ['metrics'],
  ['scheduler'],
  ['operations'],
  ['lifecycle'],
  ['schedules', 'maintenance'],
  ['jobs'],
  ['worker'],
  ['handlers'],
  ['store'],
  ['config', 'runtime'],
  ['domain'],
];

const pathOf = (layer) => (layer === 'scheduler' ? '^src/scheduler\\.ts$' : `^src/${layer}/`);
const domain = pathOf('domain');
const store = pathOf('store');

/** A layer may import itself and every layer below it. */
const downwardOnly = LAYERS.flatMap((layers, index) => {
  const below = LAYERS.slice(index + 1).flat();
  return layers.map((layer) => ({
    name: `${layer}-imports-downward`,
    comment: 'Imports point downward: see the top of .dependency-cruiser.cjs.',
    severity: 'error',
    from: { path: pathOf(layer) },
    to: { pathNot: [layer, ...below].map(pathOf), dependencyTypes: ['local'] },
  }));
});

module.exports = {
  forbidden: [
    ...downwardOnly,
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
        'Whoever does not answer over HTTP does not load the server: only with-http-server.ts is imported, and it waits.',
      severity: 'error',
      from: { path: '^(worker\\.ts|src/)', pathNot: '^src/http/(?!with-http-server)' },
      to: { path: '^src/http/(?!with-http-server)', dynamic: false },
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
          '^src/index\\.ts$',
          '^src/(http/server|metrics/attach)\\.ts$',
          '^src/worker/locks/renewal-thread\\.ts$',
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

import { createRequire } from 'node:module';
import { mongo } from 'mongoose';

/** Clients as an application opens them; closed after each test. */
export function useClients(): {
  open: (uri: string, options?: mongo.MongoClientOptions, driver?: typeof mongo) => mongo.MongoClient;
} {
  const clients: mongo.MongoClient[] = [];
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });
  return {
    open(uri, options = {}, driver = mongo) {
      const client = new driver.MongoClient(uri, options);
      clients.push(client);
      return client;
    },
  };
}

/** A second copy of the driver, as another package may have installed it: none of its classes is ours. */
export function loadSecondDriver(): typeof mongo {
  const require = createRequire(createRequire(import.meta.url).resolve('mongoose'));
  const ours = Object.entries(require.cache).filter(([path]) =>
    /[\\/]node_modules[\\/]mongodb[\\/]/.test(path),
  );
  for (const [path] of ours) Reflect.deleteProperty(require.cache, path);
  try {
    return require('mongodb') as typeof mongo;
  } finally {
    Object.assign(require.cache, Object.fromEntries(ours));
  }
}

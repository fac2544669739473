// A client of the driver or a connection of mongoose can be passed as it is, instead of a connection string.
import mongoose, { mongo } from 'mongoose';
import { Scheduler, type SchedulerOptions } from '../../../src/index.js';

export const schedulers: Scheduler[] = [
  new Scheduler({ uri: 'mongodb://localhost/app', prefix: 'shop_' }),
  new Scheduler({ uri: 'mongodb://localhost', database: 'app' }),
  new Scheduler({ client: new mongo.MongoClient('mongodb://localhost/app'), database: 'jobs' }),
  new Scheduler({ connection: mongoose.connection }),
  new Scheduler({ connection: mongoose.createConnection('mongodb://localhost/app') }),
];

export function withPrefix(options: SchedulerOptions, prefix: string): Scheduler {
  return new Scheduler({ ...options, prefix });
}

import type { Route } from '../route.js';
import { bulkRoutes } from './bulk.js';
import { executionRoutes } from './executions.js';
import { jobRoutes } from './jobs.js';
import { scheduleRoutes } from './schedules.js';
import { systemRoutes } from './system.js';

/** The JSON API, in the order of its document. */
export const ROUTES: readonly Route[] = [
  ...systemRoutes,
  ...jobRoutes,
  ...bulkRoutes,
  ...executionRoutes,
  ...scheduleRoutes,
];

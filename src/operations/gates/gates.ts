import { finished } from './finished.js';
import type { Gate } from './gate.js';
import { buffered, lockExpired, running } from './locked.js';
import {
  noOccurrence,
  notMade,
  runningElsewhere,
  schedulePaused,
  skipped,
  unreadableSchedule,
} from './occurrence.js';
import { suspect } from './suspect.js';
import { due, held } from './waiting.js';
import { alive, busy, handler, queue } from './workers.js';

/** In the order they are asked. The first that a job does not get past is the reason why it does not run. */
export const GATES: readonly Gate[] = [
  finished,
  lockExpired,
  running,
  buffered,
  unreadableSchedule,
  skipped,
  noOccurrence,
  schedulePaused,
  runningElsewhere,
  notMade,
  held,
  due,
  alive,
  handler,
  queue,
  busy,
  suspect,
];

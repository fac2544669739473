// Handlers of the workers whose reliability is measured.
import { setTimeout as pause } from 'node:timers/promises';

export default {
  wait: (milliseconds) => pause(milliseconds),
};

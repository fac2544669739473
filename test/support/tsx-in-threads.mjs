// `--import tsx` registers itself in the main thread only; the renewal thread runs TypeScript too.
import { isMainThread } from 'node:worker_threads';
import { register } from 'tsx/esm/api';

if (!isMainThread) register();

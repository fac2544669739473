import { DEFAULT_QUEUE } from '../config/options.js';
import { cancelJob } from '../dispatch/cancel-job.js';
import type { EventBus, Listener } from '../runtime/event-bus.js';
import type { WorkerEngine } from '../worker/engine.js';
import type { EngineRequest } from '../worker/engine-parts.js';
import { Decisions } from './decisions.js';
import type { Definitions } from './definitions.js';
import { Fulfilment } from './fulfilment.js';
import { Materialiser } from './materialiser.js';
import { Pass } from './pass.js';
import type { PassEntry } from './pass-entry.js';
import { previewPass } from './pass-preview.js';
import { Registrar } from './registrar.js';
import { StoredSchedules } from './stored-schedules.js';
import { Turn } from './turn.js';

export interface SchedulingParts extends Omit<EngineRequest, 'renewer' | 'anchor' | 'onSated'> {
  definitions: Definitions;
  engine: WorkerEngine;
}

/** Everything about schedules in a connected process. Nothing runs yet. */
export interface Scheduling {
  registrar: Registrar;
  materialiser: Materialiser;
  stored: StoredSchedules;
  pass: Pass;
  /** What a pass would do. */
  preview: (at: Date | undefined) => Promise<PassEntry[]>;
  detach: () => void;
}

export function openScheduling(parts: SchedulingParts): Scheduling {
  const { store, clock, events, random, options, registry, definitions, engine, workerId, patience } = parts;
  const { queues, environment, pollInterval, executionRetention, maxPayloadBytes } = options;
  const decisions = new Decisions({ store, events });
  const fulfilment = new Fulfilment({
    store,
    clock,
    events,
    skipRetention: executionRetention,
    cancel: (jobId, reason) => cancelJob({ store, clock, events, engine }, jobId, reason),
    nudge: () => {
      engine.nudge();
    },
  });
  const registrar = new Registrar({ store, clock, events, definitions });
  const materialiser = new Materialiser({
    ...{
      clock,
      events,
      random,
      store,
      decisions,
      fulfilment,
      registrar,
      environment,
      pollInterval,
      patience,
    },
    turn: new Turn({ clock, workerId, store }),
  });
  const wake = (): void => {
    materialiser.changed();
  };
  return {
    registrar,
    materialiser,
    stored: new StoredSchedules({
      ...{ store, clock, registry, decisions, fulfilment, maxPayloadBytes },
      context: definitions.context,
      nudge: wake,
      look: (scheduleId) => {
        materialiser.look(scheduleId);
      },
    }),
    pass: new Pass({
      ...{ store, clock, definitions, decisions, fulfilment, environment },
      runInPlace: (job) => engine.runInPlace(job),
      // One that this process serves: what crashed in place is found by the next pass.
      inlineQueue: queues.includes(DEFAULT_QUEUE) ? DEFAULT_QUEUE : (queues[0] ?? DEFAULT_QUEUE),
      isStopped: () => engine.isStopped,
    }),
    preview: (at) => {
      const isRegistered = (name: string): boolean => registrar.isRegistered(name);
      return previewPass({ store, clock, definitions, environment, isRegistered }, at);
    },
    detach: followEnds(events, materialiser),
  };
}

/** Tells the materialiser of every job that ended here; returns how to stop that. */
function followEnds(events: EventBus, materialiser: Materialiser): () => void {
  const ended = ({ jobId }: { jobId: string }): void => {
    materialiser.runEnded(jobId);
  };
  const failed: Listener<'job:failed'> = (event) => {
    if (!event.willRetry) ended(event);
  };
  const names = ['job:complete', 'job:cancelled', 'job:skipped'] as const;
  for (const name of names) events.on(name, ended);
  events.on('job:failed', failed);
  return () => {
    for (const name of names) events.off(name, ended);
    events.off('job:failed', failed);
  };
}

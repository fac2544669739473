import type { BulkAction } from '../../operations/bulk.js';
import type { Scheduler } from '../../scheduler.js';

/** What became of one job that was named by its id. */
export interface Change {
  id: string;
  /** `changed`, `requested` of its worker, or the reason it was left alone: its status, or `not found`. */
  result: string;
  isDone: boolean;
}

export interface Verb {
  action: BulkAction;
  summary: string;
  past: string;
  takesReason: boolean;
  one: (scheduler: Scheduler, id: string, reason: string | undefined) => Promise<Change>;
}

export const RETRY: Verb = {
  action: 'retry',
  summary:
    'Run finished jobs again: by id, or by a filter (then those that FAILED, unless it says another status)',
  past: 'put back into play',
  takesReason: false,
  one: async (scheduler, id) => {
    const answer = await scheduler.retry(id);
    return changed(id, answer.retried, answer.retried ? undefined : answer.status);
  },
};

export const VERBS: readonly Verb[] = [
  RETRY,
  {
    action: 'cancel',
    summary: 'Cancel jobs that wait, and ask the workers of those that run',
    past: 'cancelled',
    takesReason: true,
    one: async (scheduler, id, reason) => {
      const answer = await scheduler.cancel(id, reason);
      if (answer.answer === 'requested') return { id, result: 'requested', isDone: true };
      return changed(
        id,
        answer.answer === 'cancelled',
        answer.answer === 'alreadyFinished' ? answer.status : null,
      );
    },
  },
  {
    action: 'hold',
    summary: 'Take waiting jobs out of play until they are released',
    past: 'held',
    takesReason: true,
    one: async (scheduler, id, reason) => held(id, await scheduler.hold(id, reason)),
  },
  {
    action: 'release',
    summary: 'Put held jobs back into play',
    past: 'released',
    takesReason: false,
    one: async (scheduler, id) => held(id, await scheduler.unhold(id)),
  },
];

function changed(id: string, isDone: boolean, status: string | null | undefined): Change {
  return { id, isDone, result: isDone ? 'changed' : (status ?? 'not found') };
}

function held(id: string, answer: { changed: true } | { changed: false; status: string | null }): Change {
  return changed(id, answer.changed, answer.changed ? undefined : answer.status);
}

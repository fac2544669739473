import type { Draft } from '../dispatch/draft.js';
import type { JobHandle } from '../dispatch/job-handle.js';

/** A dispatch of a definition, with a time of its own. */
export interface BoundDraft {
  args(payload: unknown): BoundDraft;
  dispatch(): Promise<JobHandle>;
}

export function bindDraft(draft: Draft<string>, name: string): BoundDraft {
  return {
    args: (payload) => bindDraft(draft.args(payload), name),
    dispatch: () => draft.dispatch(name),
  };
}

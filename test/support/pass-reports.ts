import assert from 'node:assert/strict';
import type { PassEntry, PassReport, Scheduler } from '../../src/index.js';
import { signal } from './events.js';
import type { ManualClock } from './manual-clock.js';

const MINUTE = 60_000;

type Line = [name: string, result: string, reason: string | null];

export function linesOf({ entries }: PassReport): Line[] {
  return entries.map(({ name, result, reason }) => [name, result, reason]);
}

export function entryOf({ entries }: PassReport, name: string): PassEntry {
  const found = entries.filter((entry) => entry.name === name);
  assert.equal(found.length, 1, `${name}: ${JSON.stringify(entries)}`);
  return found[0]!;
}

/** A handler that records the ids of its jobs. */
export function recorder(): { ran: string[]; note: (payload: unknown, job: { id: string }) => void } {
  const ran: string[] = [];
  return { ran, note: (_, { id }) => void ran.push(id) };
}

/** Signals that fire after the test at the latest, so that no handler waits forever. */
export function useSignals(): () => ReturnType<typeof signal<void>> {
  const made: ReturnType<typeof signal<void>>[] = [];
  afterEach(() => {
    for (const { fire } of made.splice(0)) fire();
  });
  return () => {
    const one = signal();
    made.push(one);
    return one;
  };
}

/** For a pass that the test awaits later: a rejection in the meantime is not unhandled. */
export function inBackground(pass: Promise<PassReport>): Promise<PassReport> {
  pass.catch(() => undefined);
  return pass;
}

/** Stores the definitions without running what is due in the current minute, and makes a pass a minute later. */
export async function secondPass(scheduler: Scheduler, clock: ManualClock): Promise<PassReport> {
  await scheduler.run();
  clock.advance(MINUTE);
  return scheduler.runOnce();
}

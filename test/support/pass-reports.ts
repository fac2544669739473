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

/** A handler, and the ids of the jobs it ran for. */
export function recorder(): { ran: string[]; note: (payload: unknown, job: { id: string }) => void } {
  const ran: string[] = [];
  return { ran, note: (_, { id }) => void ran.push(id) };
}

/** Signals that fire at the latest when the test is over, so that no handler waits for ever. */
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

/** A pass that goes on while the test does something else. */
export function inBackground(pass: Promise<PassReport>): Promise<PassReport> {
  pass.catch(() => undefined);
  return pass;
}

/** A first pass stores the definitions; a minute later they are due. */
export async function secondPass(scheduler: Scheduler, clock: ManualClock): Promise<PassReport> {
  await scheduler.runOnce();
  clock.advance(MINUTE);
  return scheduler.runOnce();
}

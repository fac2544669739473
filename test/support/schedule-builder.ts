import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import { type ScheduleBuilder, Scheduler, type SchedulerOptions } from '../../src/index.js';

export type Call = readonly [method: string, ...args: unknown[]];
export type Build = (builder: ScheduleBuilder<unknown>) => ScheduleBuilder<unknown>;

/** A Thursday. */
export const FROM = '2026-01-01T00:00:00Z';

export function aScheduler(options: Partial<SchedulerOptions> = {}): Scheduler {
  return new Scheduler({ uri: 'mongodb://unused/app', ...options });
}

export function aBuilder(options: Partial<SchedulerOptions> = {}): ScheduleBuilder<unknown> {
  return aScheduler(options).schedule('work', () => undefined);
}

export function callMethod(builder: ScheduleBuilder<unknown>, [method, ...args]: Call): unknown {
  return (builder as unknown as Record<string, (...args: unknown[]) => unknown>)[method]!(...args);
}

export function formatCall([method, ...args]: Call): string {
  return `${method}(${args.map((argument) => inspect(argument)).join(', ')})`;
}

export function formatRuns(runs: readonly Date[]): string[] {
  return runs.map((at) => at.toISOString().slice(0, 19));
}

/** Checks the next runs of a builder; `expected` are times without their year, 2026. */
export function assertNextRuns(build: Build, expected: readonly string[], from = FROM): void {
  const runs = build(aBuilder()).nextRuns(expected.length, from);
  assert.deepEqual(
    formatRuns(runs),
    expected.map((at) => `2026-${at}`),
  );
}

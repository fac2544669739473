/** What is better: more of it, or less. */
export type Better = 'more' | 'less';

/** One line of the report: what Chronos does, beside the least or most that is possible on this machine in the same run. */
export interface Figure {
  id: string;
  what: string;
  unit: string;
  better: Better;
  /** The median of the runs. */
  value: number;
  runs: number[];
  /** What it is held against: the driver alone, unless `against` says otherwise. */
  floor: number | null;
  against: string | null;
  ratio: number | null;
  /** What the ratio, or the value where there is no floor, has to reach. */
  target: number | null;
  /** Anything else worth knowing. */
  note: string | null;
}

export interface Measurement {
  id: string;
  what: string;
  unit: string;
  better?: Better;
  runs: readonly number[];
  floors?: readonly number[];
  against?: string;
  target?: number;
  note?: string;
}

export function figure(measurement: Measurement): Figure {
  const { id, what, unit, better = 'more', runs, floors, against, target, note } = measurement;
  const value = median(runs);
  const floor = floors === undefined ? null : median(floors);
  return {
    ...{ id, what, unit, better, value, runs: [...runs], floor },
    against: floor === null ? null : (against ?? 'the driver alone'),
    ratio: floor === null ? null : value / floor,
    ...{ target: target ?? null, note: note ?? null },
  };
}

/** Undefined where there is no target. */
export function isReached({ better, value, ratio, target }: Figure): boolean | undefined {
  if (target === null) return undefined;
  const reached = ratio ?? value;
  return better === 'more' ? reached >= target : reached <= target;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function percentile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = fraction * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)] ?? NaN, sorted[Math.ceil(place)] ?? NaN];
  return below + (above - below) * (place - Math.floor(place));
}

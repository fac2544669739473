/** Whether a higher or a lower value is better. */
export type Better = 'more' | 'less';

/** One line of the report: a value of Chronos, and the value it is compared with, measured in the same run. */
export interface Figure {
  id: string;
  what: string;
  unit: string;
  better: Better;
  /** The median of the runs. */
  value: number;
  runs: number[];
  /** The median of what it is compared with: the MongoDB driver alone, or `against`. Null: with nothing. */
  floor: number | null;
  against: string | null;
  /** `value / floor` */
  ratio: number | null;
  /** What the ratio (or the value, without a floor) should reach. */
  target: number | null;
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

/** Undefined without a target. */
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
  const index = fraction * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(index)] ?? NaN, sorted[Math.ceil(index)] ?? NaN];
  return below + (above - below) * (index - Math.floor(index));
}

import { type MeasurementName, type Measurements, onMeasurement } from '../../src/runtime/measurements.js';

interface Measured {
  readonly workerId: string;
}

/** The next measurement of that name that `matches`. Call it before the action that causes it. */
export function nextMeasurement<M extends MeasurementName>(
  { workerId }: Measured,
  name: M,
  matches: (measurement: Measurements[M]) => boolean = () => true,
): Promise<Measurements[M]> {
  return new Promise((resolve) => {
    const unsubscribe = onMeasurement(workerId, name, (measurement) => {
      if (!matches(measurement)) return;
      unsubscribe();
      resolve(measurement);
    });
  });
}

/** Resolves with the next `count` measurements of that name. */
export function countMeasurements<M extends MeasurementName>(
  worker: Measured,
  name: M,
  count: number,
): Promise<Measurements[M][]> {
  const found: Measurements[M][] = [];
  return nextMeasurement(worker, name, (measurement) => found.push(measurement) === count).then(() => found);
}

/** An array to which every measurement of that name is added from now on. */
export function recordMeasurements<M extends MeasurementName>(
  { workerId }: Measured,
  name: M,
): Measurements[M][] {
  const found: Measurements[M][] = [];
  onMeasurement(workerId, name, (measurement) => found.push(measurement));
  return found;
}

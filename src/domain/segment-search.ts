import { isEverTime, nextWall, type TimeFields } from './time-fields.js';
import type { ZoneSegment } from './time-zone.js';

/** Finds the first match after one instant and up to another, `last`, within a segment of a zone. In milliseconds. */
export type SegmentSearch = (segment: ZoneSegment, after: number, last: number) => number | undefined;

const SECOND = 1000;
const DAY = 86_400_000;

/*
 * Where clocks change: segment i runs from instant T with offset o, after an offset p. On the wall, the time line is
 * cut at T + p, where the clocks of the segment before end. A fixed time belongs to the segment that owns its place on
 * that line: one that a leap forward skips lies before the segment's first wall time T + o and fires at T, right
 * after the gap; one that is shown twice lies before T + p and fires in the segment before, once.
 */
export function fixedTimes(fields: TimeFields): SegmentSearch {
  return ({ start, offset, previousOffset }, after, last) => {
    const owned = start + previousOffset;
    const first = after < start ? owned : Math.max(owned, after + 1 + offset);
    const wall = nextWall(fields, first, last + offset);
    return wall === undefined ? undefined : Math.max(start, wall - offset);
  };
}

/** Every N minutes, say: due whenever clocks show it, twice where they do, never where they do not. */
export function openTimes(fields: TimeFields): SegmentSearch {
  return ({ start, offset }, after, last) => {
    const wall = nextWall(fields, Math.max(start, after + 1) + offset, last + offset);
    return wall === undefined ? undefined : wall - offset;
  };
}

/**
 * Real time from the anchor on, where the constraints allow it. As long as an offset lasts, steps come upon times of
 * the day that lie a common divisor of step and day apart: when none of them is allowed, looking at each is in vain.
 */
export function steps(fields: TimeFields, every: number, anchor: number): SegmentSearch {
  const stepFrom = (instant: number): number =>
    anchor + Math.max(0, Math.ceil((instant - anchor) / every)) * every;
  const apart = greatestDivisor(every, DAY);
  const known = new Map<number, boolean>();
  return ({ start, offset }, after, last) => {
    const isPossible = known.get(offset) ?? isEverTime(fields, anchor + offset, apart);
    known.set(offset, isPossible);
    if (!isPossible) return undefined;
    for (let instant = stepFrom(Math.max(start, after + 1)); instant <= last;) {
      const shown = Math.floor((instant + offset) / SECOND) * SECOND;
      const wall = nextWall(fields, shown, last + offset);
      if (wall === undefined) return undefined;
      if (wall === shown) return instant;
      instant = stepFrom(wall - offset);
    }
    return undefined;
  };
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

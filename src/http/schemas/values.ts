import type { StoredError } from '../../domain/errors.js';
import { LONGEST_JOB_ID } from '../../domain/names.js';
import { JOB_STATUSES } from '../../domain/job.js';
import type { Count } from '../../store/list-jobs.js';
import {
  amount,
  answer,
  either,
  flag,
  input,
  integer,
  nullable,
  oneOf,
  shown,
  text,
  type SchemaOf,
} from './schema.js';

const LARGEST_PAGE = 200;

export const name = text(200);
export const reason = text(500, 'why; kept with the job or schedule');
export const status = oneOf(...JOB_STATUSES);

/** Milliseconds, or text with its unit. */
export const duration: SchemaOf<number | string> = either(
  { type: 'number', minimum: 0 } satisfies SchemaOf<number> as SchemaOf<number>,
  {
    ...text(30, "a text with its unit: '250ms', '10s', '5m', '1h', '3d'; a number is milliseconds"),
    pattern: '^\\d+(\\.\\d+)?\\s*[a-z]+$',
  },
);

/** Without a zone it means the scheduler's time zone. */
export const instant: SchemaOf<string> = {
  ...text(40, "like '2026-11-01T03:15:00Z', or '2026-11-01 03:15' in the scheduler's time zone"),
  pattern: '^\\d{4}-\\d{2}-\\d{2}[0-9T :.Z+-]*$',
};

export const limit = integer(1, LARGEST_PAGE, `default 20, at most ${LARGEST_PAGE}`);
export const cursor: SchemaOf<string> = {
  ...text(2000, '`next` of the page before'),
  pattern: '^[A-Za-z0-9_-]+$',
};
export const next = nullable(shown('`after` of the next page; null when this is the last'));

export const jobParams = input({ id: text(LONGEST_JOB_ID, 'of a job, percent-encoded') }, ['id']);
export const scheduleParams = input({ id: text(200, 'of a schedule, percent-encoded') }, ['id']);

export const count = answer<Count>({
  count: amount(),
  atLeast: flag('true when there are more than were counted'),
});

export const storedError = nullable(
  answer<StoredError>({
    name: shown(),
    message: shown(),
    code: nullable(shown()),
    stack: nullable(shown()),
  }),
);

export { attachMetrics, type Health, type Metrics, type MetricsOptions, type Observed } from './attach.js';
export { ERROR_KINDS, errorKind, type ErrorKind } from './error-kind.js';

import { attachMetrics } from '../../src/metrics/attach.js';

// The table of metrics, from the registry itself.

export interface MetricFacts {
  name: string;
  type: string;
  labels: readonly string[];
  help: string;
}

/** Every metric, sorted by name. */
export async function describeMetrics(): Promise<MetricFacts[]> {
  const idle = { concurrency: 0, running: 0, buffered: 0, unsettled: 0, isDraining: false, queueSlots: [] };
  const metrics = attachMetrics({
    workerId: 'docs',
    on: () => undefined,
    off: () => undefined,
    state: 'Stopped',
    load: { ...idle, queues: [], taskTypes: [], connection: null },
    backlog: () => Promise.resolve([]),
  });
  try {
    const all = await metrics.registry.getMetricsAsJSON();
    return all
      .map(({ name, type, help }) => ({ name, type: String(type), help, labels: labelsOf(metrics, name) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    metrics.detach();
  }
}

/** prom-client does not export the type of this field. */
function labelsOf({ registry }: ReturnType<typeof attachMetrics>, name: string): readonly string[] {
  return (registry.getSingleMetric(name) as unknown as { labelNames: string[] }).labelNames;
}

export async function metricTable(): Promise<string> {
  const rows = (await describeMetrics()).map(
    ({ name, type, labels, help }) =>
      `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |`,
  );
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

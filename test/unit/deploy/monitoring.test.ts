import assert from 'node:assert/strict';
import { describeMetrics, type MetricFacts } from '../../../scripts/docs/metrics.js';
import { type Operation, OPERATIONS } from '../../../src/domain/events.js';
import { read, readYaml } from '../../support/deploy-files.js';

interface Dashboard {
  panels: { title: string; type: string; id: number; targets?: { expr: string }[] }[];
}

interface AlertRules {
  groups: {
    rules: {
      alert: string;
      expr: string;
      labels: { severity: string };
      annotations: Record<string, string>;
    }[];
  }[];
}

const NAME = /\bchronos_[a-z0-9_]+/g;
const MATCHERS = /\b(chronos_[a-z0-9_]+)\{([^}]*)\}/g;
/** Labels that Prometheus adds, and the bound of a histogram bucket. */
const ADDED_LABELS = ['job', 'instance', 'le'];

/** Metrics and labels in an expression that no worker exports. */
function findUnknown(expr: string, metrics: ReadonlyMap<string, MetricFacts>): string[] {
  const find = (name: string): MetricFacts | undefined => {
    const family = metrics.get(name.replace(/_(bucket|sum|count)$/, ''));
    return metrics.get(name) ?? (family?.type === 'histogram' ? family : undefined);
  };
  const names = [...expr.matchAll(NAME)].map(([name]) => name).filter((name) => find(name) === undefined);
  const labels = [...expr.matchAll(MATCHERS)].flatMap(([, name = '', matchers = '']) =>
    [...matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)]
      .map(([, label = '']) => label)
      .filter((label) => !ADDED_LABELS.includes(label) && find(name)?.labels.includes(label) !== true)
      .map((label) => `${name}{${label}}`),
  );
  return [...names, ...labels];
}

describe('monitoring files', () => {
  let metrics: Map<string, MetricFacts>;

  before(async () => {
    metrics = new Map((await describeMetrics()).map((metric) => [metric.name, metric]));
  });

  it('exclude exactly the loops that do not use the database from the last good cycle [B13]', () => {
    const local = Object.keys(OPERATIONS).filter((name) => OPERATIONS[name as Operation].isLocal === true);
    for (const path of ['deploy/grafana/chronos.json', 'deploy/prometheus/alerts.yaml']) {
      const excluded = [...read(path).matchAll(/loop!=\\?"([^"\\]+)/g)].map(([, name = '']) => name);
      assert.deepEqual(excluded, local, path);
    }
  });

  it('have a dashboard that uses existing metrics and labels and shows every metric [F7] [B13]', () => {
    const { panels } = JSON.parse(read('deploy/grafana/chronos.json')) as Dashboard;
    const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    assert.ok(exprs.length > 20);
    assert.deepEqual(
      exprs.flatMap((expr) => findUnknown(expr, metrics)),
      [],
    );
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const notShown = [...metrics.keys()].filter((name) => !exprs.some((expr) => expr.includes(name)));
    assert.deepEqual(notShown, []);
  });

  it('have documented alerts that use existing metrics and labels [F7]', () => {
    const { groups } = readYaml('deploy/prometheus/alerts.yaml') as AlertRules;
    const rules = groups.flatMap((group) => group.rules);
    assert.deepEqual(
      rules.flatMap(({ expr }) => findUnknown(expr, metrics)),
      [],
    );
    for (const { alert, labels, annotations } of rules) {
      assert.match(alert, /^Chronos[A-Z]/);
      assert.match(labels.severity, /^(info|warning|critical)$/);
      assert.ok(annotations['summary'] && annotations['description'], alert);
    }
    const page = read('docs/metrics.md');
    for (const { alert } of rules)
      assert.ok(page.includes(`\`${alert}\``), `${alert} is not in docs/metrics.md`);
    const required = ['ErrorRate', 'LocksLost', 'Delays', 'Disconnected', 'NoGoodCycle', 'EventLoopLag'];
    for (const name of required)
      assert.ok(
        rules.some(({ alert }) => alert === `Chronos${name}`),
        name,
      );
  });

  it('are checked by a function that finds names and labels that do not exist', () => {
    assert.deepEqual(findUnknown('rate(chronos_jobs_total{queue="a"}[5m]) + chronos_nothing', metrics), [
      'chronos_nothing',
      'chronos_jobs_total{queue}',
    ]);
    assert.deepEqual(findUnknown('chronos_slots_count', metrics), ['chronos_slots_count']);
  });
});

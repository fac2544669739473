import assert from 'node:assert/strict';
import { ROLES } from '../../support/secured-database.js';
import { read, readYaml } from '../../support/deploy-files.js';

interface AlertRules {
  groups: { rules: { alert: string; annotations: Record<string, string> }[] }[];
}

/** The anchors that GitHub generates from the headings of a page. */
function anchorsOf(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('docs/operations.md', () => {
  const page = read('docs/operations.md');
  const anchors = anchorsOf(page);
  const alerts = (readYaml('deploy/prometheus/alerts.yaml') as AlertRules).groups.flatMap(
    ({ rules }) => rules,
  );

  it('has exactly one section per alert, to which its runbook_url points', () => {
    const sections = [...page.matchAll(/^#### (.+)$/gm)].map(([, name = '']) => name);
    assert.deepEqual(
      sections,
      alerts.map(({ alert }) => alert),
    );
    for (const { alert, annotations } of alerts) {
      const [file, anchor = ''] = annotations['runbook_url']?.split('#') ?? [];
      assert.equal(file, 'docs/operations.md', alert);
      assert.ok(anchors.has(anchor), alert);
      assert.equal(anchor, alert.toLowerCase());
    }
  });

  it('has only links that work', () => {
    const links = [...page.matchAll(/\]\(#([^)]+)\)/g)].map(([, anchor = '']) => anchor);
    assert.ok(links.length > 10);
    assert.deepEqual(
      links.filter((anchor) => !anchors.has(anchor)),
      [],
    );
    for (const [, file = ''] of page.matchAll(/\]\(([\w.]+\.md)\)/g))
      assert.ok(read(`docs/${file}`).length > 0);
  });

  it('lists every role', () => {
    for (const role of Object.keys(ROLES)) assert.ok(page.includes(`| \`${role}\` |`), role);
  });
});

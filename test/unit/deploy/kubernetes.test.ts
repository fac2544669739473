import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2.js';
import type { Container, Secret, Service } from 'kubernetes-types/core/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import { describeMetrics } from '../../../scripts/docs/metrics.js';
import { KNOWN_VARIABLES, minStopTimeout, PORT, readAllYaml, readYaml } from '../../support/deploy-files.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const FOLDERS = ['deploy/kubernetes/base', 'deploy/kubernetes/monitored'];

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
}

/** The module with the types of an API version. */
const TYPES: Readonly<Record<string, string>> = {
  v1: 'kubernetes-types/core/v1',
  'apps/v1': 'kubernetes-types/apps/v1',
  'policy/v1': 'kubernetes-types/policy/v1',
  'networking.k8s.io/v1': 'kubernetes-types/networking/v1',
  'autoscaling/v2': 'kubernetes-types/autoscaling/v2',
};

/** Kinds that are not part of Kubernetes itself, so kubernetes-types does not have them. */
const EXTERNAL_KINDS = ['Kustomization', 'ServiceMonitor'];

interface ServiceMonitor {
  spec: {
    selector: { matchLabels: object };
    endpoints: { port: string; path: string; authorization: { credentials: object } }[];
  };
}

interface Kustomization {
  kind: string;
  resources: string[];
}

function filesIn(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder)).map((name) => `${folder}/${name}`);
}

/** A TypeScript program that compiles only if every field of the manifests exists and has the right type. */
function toProgram(manifests: readonly Manifest[]): string {
  const lines = manifests.map(({ apiVersion, kind, ...rest }, index) => {
    const literal = JSON.stringify({ apiVersion, kind, ...rest });
    return `import type { ${kind} as T${index} } from '${TYPES[apiVersion]}';\nexport const m${index}: T${index} = ${literal};`;
  });
  return lines.join('\n');
}

function compileErrors(manifests: readonly Manifest[]): string[] {
  const file = path.join(ROOT, 'manifests.ts');
  const options: ts.CompilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, types: [] },
    ...{ module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  };
  const host = ts.createCompilerHost(options);
  const source = ts.createSourceFile(file, toProgram(manifests), ts.ScriptTarget.ES2023);
  const getSourceFile: typeof host.getSourceFile = (name, ...rest) =>
    name === file ? source : original(name, ...rest);
  const original = host.getSourceFile.bind(host);
  const program = ts.createProgram([file], options, { ...host, getSourceFile });
  const found = [...program.getSyntacticDiagnostics(), ...program.getSemanticDiagnostics()];
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
}

describe('the Kubernetes manifests', () => {
  const all = new Map(
    FOLDERS.flatMap(filesIn).map((file) => [file, readAllYaml(file) as Manifest[]] as const),
  );
  const manifests = [...all.values()].flat().filter(({ kind }) => kind !== undefined);

  function find(kind: string): unknown {
    const found = manifests.find((manifest) => manifest.kind === kind);
    assert.ok(found !== undefined, kind);
    return found;
  }

  const deployment = find('Deployment') as Deployment;
  const pod = deployment.spec?.template.spec;
  const [worker] = pod?.containers ?? ([] as Container[]);
  const environment = new Map(worker?.env?.map(({ name, value }) => [name, value]));

  it('have only fields that exist in Kubernetes, with the right types', () => {
    const native = manifests.filter(({ kind }) => !EXTERNAL_KINDS.includes(kind));
    assert.ok(native.length >= 7);
    assert.deepEqual(compileErrors(native), []);
    const wrong = JSON.stringify(deployment).replace('"readOnlyRootFilesystem"', '"readOnlyRoot"');
    assert.match(compileErrors([JSON.parse(wrong) as Manifest]).join(), /readOnlyRoot/);
  });

  it('have no namespace, and kustomizations list only existing files and never the secret', () => {
    for (const { kind, metadata } of manifests)
      if (kind !== 'Kustomization') assert.equal(metadata.namespace, undefined, kind);
    for (const folder of FOLDERS) {
      const { resources } = readYaml(`${folder}/kustomization.yaml`) as Kustomization;
      for (const name of resources) {
        const at = path.posix.join(folder, name);
        assert.ok(all.has(at) || FOLDERS.includes(at), at);
        assert.doesNotMatch(at, /secret/);
      }
    }
  });

  it('give workers existing variables, and secrets as files from the Secret, whose values are empty', () => {
    for (const name of environment.keys()) assert.ok(KNOWN_VARIABLES.has(name), name);
    const keys = Object.keys((find('Secret') as Secret).stringData ?? {});
    for (const name of ['MONGODB_URI', 'HTTP_TOKEN', 'HTTP_READ_TOKEN']) {
      const file = environment.get(`${name}_FILE`) ?? '';
      assert.ok(keys.includes(path.basename(file)), name);
      assert.equal(
        path.dirname(file),
        worker?.volumeMounts?.find((mount) => mount.name === 'secrets')?.mountPath,
      );
    }
    for (const value of Object.values((find('Secret') as Secret).stringData ?? {})) assert.equal(value, '');
  });

  it('give workers more time to stop than they need', () => {
    const least = minStopTimeout(environment.get('SHUTDOWN_GRACE'));
    assert.ok((pod?.terminationGracePeriodSeconds ?? 0) >= least);
    assert.equal(worker?.lifecycle, undefined);
  });

  it('agree on the port and probe existing routes', () => {
    const port = Number(PORT);
    assert.deepEqual([environment.get('HTTP_PORT'), worker?.ports?.[0]?.containerPort], [PORT, port]);
    assert.equal(worker?.ports?.[0]?.name, 'http');
    const [served] = (find('Service') as Service).spec?.ports ?? [];
    assert.deepEqual([served?.port, served?.targetPort], [port, 'http']);
    const probes = [worker?.startupProbe, worker?.livenessProbe, worker?.readinessProbe];
    assert.deepEqual(
      probes.map((probe) => [probe?.httpGet?.path, probe?.httpGet?.port]),
      [
        ['/healthz', 'http'],
        ['/healthz', 'http'],
        ['/readyz', 'http'],
      ],
    );
    assert.equal((find('NetworkPolicy') as NetworkPolicy).spec?.ingress?.[0]?.ports?.[0]?.port, 'http');
  });

  it('meet the restricted pod security standard', () => {
    assert.equal(pod?.securityContext?.runAsNonRoot, true);
    assert.equal(pod?.securityContext?.seccompProfile?.type, 'RuntimeDefault');
    const { allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities } = worker?.securityContext ?? {};
    assert.deepEqual(
      [allowPrivilegeEscalation, readOnlyRootFilesystem, capabilities?.drop],
      [false, true, ['ALL']],
    );
    assert.equal(pod?.automountServiceAccountToken, false);
    assert.ok(worker?.resources?.requests && worker.resources.limits?.['memory']);
  });

  it('scale by a metric that workers export and the adapter provides', async () => {
    const { spec } = find('HorizontalPodAutoscaler') as HorizontalPodAutoscaler;
    const [metric] = spec?.metrics ?? [];
    const name = metric?.external?.metric.name ?? '';
    const exported = (await describeMetrics()).find((candidate) => candidate.name === name);
    assert.deepEqual(exported?.labels, Object.keys(metric?.external?.metric.selector?.matchLabels ?? {}));
    const adapter = readYaml('deploy/kubernetes/monitored/prometheus-adapter.yaml') as {
      rules: { external: { seriesQuery: string; name: { as: string }; metricsQuery: string }[] };
    };
    const [rule] = adapter.rules.external;
    assert.ok(rule?.seriesQuery.startsWith(`${name}{`) === true);
    assert.equal(rule?.name.as, name);
    assert.match(rule?.metricsQuery ?? '', /^max\(/);
    assert.equal(spec?.scaleTargetRef.name, deployment.metadata?.name);
  });

  it('scrape /metrics of the Service with the read token', () => {
    const { spec } = find('ServiceMonitor') as ServiceMonitor;
    const [endpoint] = spec.endpoints;
    assert.deepEqual([endpoint?.port, endpoint?.path], ['http', '/metrics']);
    assert.deepEqual(endpoint?.authorization.credentials, { name: 'chronos', key: 'http-read-token' });
    assert.deepEqual(spec.selector.matchLabels, (find('Service') as Service).metadata?.labels);
  });
});

import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';

type Json = Record<string, unknown>;

interface Parameter {
  name: string;
  in: 'path' | 'query';
  required: boolean;
  schema: Json;
}

/** An operation of the OpenAPI document. */
export interface Operation {
  method: string;
  path: string;
  operationId: string;
  summary: string;
  role: 'read' | 'operate' | undefined;
  parameters: readonly Parameter[];
  body: Json | undefined;
  responses: Readonly<Record<string, { content: Record<string, { schema: Json }> }>>;
}

export interface Call {
  params?: Record<string, string>;
  query?: Record<string, string | number | boolean>;
  body?: unknown;
  token?: string | undefined;
  headers?: Record<string, string>;
}

/** The fields of all JSON responses together. Which of them a response has depends on the operation; its schema checks that. */
export interface ResponseBody {
  id: string;
  jobId: string;
  result: string;
  state: string;
  status: string | number;
  items: {
    id: string;
    outcome: string;
    name: string;
    queue: string;
    isLive: boolean;
    invalid: string | null;
  }[];
  next: string | null;
  job: { payload: unknown; held: { reason: string }; nextRunAt: string; invalid: string | null };
  matching: { count: number };
  outcome: { changed: number; cancelled: number };
  rule: { cron: string };
  paused: { by: string };
  nextRuns: string[];
  existing: number;
  differences: unknown[];
  workers: unknown[];
  findings: unknown[];
  options: object;
  type: string;
  code: string;
  detail: string;
  requestId: string;
}

interface ApiResponse {
  status: number;
  headers: Headers;
  body: ResponseBody;
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

/** A client that knows only the OpenAPI document that a worker serves, and checks every response against it. */
export class ApiClient {
  readonly operations: ReadonlyMap<string, Operation>;
  readonly document: Json;
  readonly #address: string;
  readonly #token: string | undefined;
  readonly #ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(address: string, document: Json, token: string | undefined) {
    this.#address = address;
    this.document = document;
    this.#token = token;
    this.#ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    this.operations = readOperations(document);
  }

  static async open(address: string, token?: string): Promise<ApiClient> {
    const response = await fetch(`${address}/api/v1/openapi.json`, {
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
    assert.equal(response.status, 200);
    return new ApiClient(address, (await response.json()) as Json, token);
  }

  /** Calls an operation by its id. Fails if the document does not describe the status of the response. */
  async call(operationId: string, call: Call = {}): Promise<ApiResponse> {
    const operation = this.operations.get(operationId);
    assert.ok(operation, `the document has no operation ${operationId}`);
    const { token = this.#token, body, headers = {} } = call;
    const hasBody = operation.body !== undefined;
    const response = await fetch(this.#urlOf(operation, call), {
      method: operation.method.toUpperCase(),
      headers: {
        ...(token !== undefined && token !== '' && { authorization: `Bearer ${token}` }),
        ...(hasBody && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(hasBody && { body: JSON.stringify(body ?? {}) }),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: await this.#read(operation, response),
    };
  }

  /** Like `call`, but fails unless the status is 200 or 201. */
  async succeed(operationId: string, call: Call = {}): Promise<ResponseBody> {
    const { status, body } = await this.call(operationId, call);
    assert.ok(status === 200 || status === 201, `${operationId}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  #urlOf({ path }: Operation, { params = {}, query = {} }: Call): string {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
    const search = new URLSearchParams(
      Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]),
    );
    return `${this.#address}${filled}${search.size === 0 ? '' : `?${search.toString()}`}`;
  }

  async #read({ operationId, responses }: Operation, response: Response): Promise<ResponseBody> {
    const text = await response.text();
    const described = responses[String(response.status)];
    assert.ok(
      described,
      `${operationId} returned ${response.status}, which the document does not describe: ${text}`,
    );
    const type = response.headers.get('content-type')?.split(';')[0] ?? '';
    const content = described.content[type];
    assert.ok(
      content,
      `${operationId} ${response.status} has the type ${type}, which the document does not describe`,
    );
    if (!type.endsWith('json')) return {} as ResponseBody;
    const value: unknown = JSON.parse(text);
    const key = `${operationId} ${response.status}`;
    const validate =
      this.#validators.get(key) ?? this.#ajv.compile(resolveRef(this.document, content.schema));
    this.#validators.set(key, validate);
    assert.ok(validate(value), `${key}: ${this.#ajv.errorsText(validate.errors)}\n${text.slice(0, 2000)}`);
    return value as ResponseBody;
  }
}

/** Follows a `$ref` to the schemas of the document. */
function resolveRef(document: Json, schema: Json): Json {
  const { $ref } = schema;
  if (typeof $ref !== 'string') return schema;
  const { schemas } = document['components'] as { schemas: Record<string, Json> };
  return schemas[$ref.replace('#/components/schemas/', '')] ?? assert.fail(`${$ref} does not exist`);
}

function readOperations(document: Json): Map<string, Operation> {
  const found = new Map<string, Operation>();
  for (const [path, methods] of Object.entries(document['paths'] as Record<string, Json>)) {
    for (const [method, described] of Object.entries(methods)) {
      assert.ok(METHODS.includes(method), `${path} has the unknown method ${method}`);
      const operation = described as Json;
      const { operationId, summary, responses } = operation as unknown as Operation;
      assert.ok(!found.has(operationId), `${operationId} is used twice`);
      const requestBody = operation['requestBody'] as
        { content: Record<string, { schema: Json }> } | undefined;
      found.set(operationId, {
        ...{ method, path, operationId, summary, responses },
        role: operation['x-role'] as Operation['role'],
        parameters: (operation['parameters'] ?? []) as Parameter[],
        body: requestBody?.content['application/json']?.schema,
      });
    }
  }
  return found;
}

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createGate, defineTool, FAULTS, memoryAudit } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import fc from 'fast-check'
import { runs } from '../../../../testing/src/runs.ts'
import { callerConfig } from '../../../../../tests/support/keys.ts'
import { openapi } from '../../../../../tests/support/openapi.ts'
import type { HttpApi } from './api.ts'
import type { Room } from '../../heart/room.ts'
import { apiOf, heartOf } from '../../testing/heart.ts'
import { revisions } from '../revisions/start.ts'
import { API_FAULTS, ApiFault } from '../../model/faults.ts'
import type { ErrorBody } from '../../model/rows.ts'

const OWN = 'http://127.0.0.1:8787'
const KEYS = { person: 'owner-key', tenant: 'tenant-key', agent: 'agent-key', none: '' } as const

const RELOAD: Room = {
  name: 'reload',
  open() {
    const refused = async () => {
      throw new ApiFault('reload_refused', 'This gateway has no file to read again.')
    }
    return { service: { reload: refused, restore: refused, release: refused } }
  },
}

function open() {
  const callers = [
    callerConfig(KEYS.person, { user: 'owner', roles: ['approver'] }, 'console'),
    callerConfig(KEYS.tenant, { user: 'vera', tenant: 'acme', roles: ['operator'] }, 'console'),
    callerConfig(KEYS.agent, { user: 'owner', roles: ['approver'] }),
  ]
  const tools = ['read', 'write'].map((name) => defineTool({ namespace: 'files', name, execute: () => 'ok' }))
  const audit = memoryAudit()
  const gate = createGate({
    // As in a gateway, tools may come and go: no name is a mistake.
    sources: [{ name: 'files', tools: () => tools, subscribe: () => () => {} }],
    apps: { desk: { tools: ['files:*'] } },
    policy: [{ ask: ['files:write'] }],
    limits: ['files:read:2/60'],
    audit,
    state: memoryState(),
  })
  const faults: unknown[] = []
  const fleet = {
    rows: () => [{ name: 'files', status: 'ready', since: 0, restarts: 0, toolCount: 2, rejected: [] }],
    restart: async () => {},
    logs: { of: () => [] },
  }
  const api = apiOf(heartOf({ gate, callers, audit, fleet, onFault: (error) => faults.push(error) }), [
    { start: RELOAD },
    { start: revisions },
  ])
  return { api, gate, faults }
}

interface Sent {
  readonly key?: keyof typeof KEYS
  readonly type?: string
  readonly body?: string | undefined
}

function ask(
  api: Pick<HttpApi, 'fetch'>,
  method: string,
  path: string,
  { key = 'person', type, body }: Sent = {},
): Promise<Response> {
  const headers = {
    host: '127.0.0.1:8787',
    ...(KEYS[key] !== '' && { authorization: `Bearer ${KEYS[key]}` }),
    ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
  }
  return api.fetch(new Request(`${OWN}${path}`, { method, headers, ...(body !== undefined && { body }) }))
}

let world: ReturnType<typeof open>
before(() => void (world = open()))
after(() => world.gate.close())

describe('a request that is no usual one', () => {
  const table = [
    ['HEAD', '/api/session', 200, undefined],
    ['HEAD', '/api/logout', 405, undefined],
    ['HEAD', '/api/nothing', 404, undefined],
    ['GET', '/api', 404, 'route_unknown'],
    ['GET', '/api/', 404, 'route_unknown'],
    ['GET', '/api/session/', 404, 'route_unknown'],
    ['GET', '/api//session', 404, 'route_unknown'],
    ['GET', '/api/sessio%6e', 404, 'route_unknown'],
    ['GET', '/api%2fsession', 404, 'route_unknown'],
    ['POST', '/api/c%61ll', 404, 'route_unknown'],
    ['GET', '/api/session;a=1', 404, 'route_unknown'],
    ['GET', '/api/%00', 400, 'request_malformed'],
    ['GET', '/api/%zz', 400, 'request_malformed'],
    ['GET', '/api/session%', 400, 'request_malformed'],
    ['DELETE', '/api/halts/%00', 400, 'request_malformed'],
    ['DELETE', '/api/halts/%ff', 400, 'request_malformed'],
    ['DELETE', '/api/halts/%zz', 400, 'request_malformed'],
    ['DELETE', '/api/halts/a%2fb', 404, 'halt_unknown'],
    ['POST', '/api/approvals/%ff/compare', 400, 'request_malformed'],
    ['DELETE', '/api/halts/a?x=1', 400, 'query_invalid'],
    ['GET', '/api/tools?as=owner&as=owner', 400, 'query_invalid'],
    ['GET', '/api/tools?as=%00', 400, 'query_invalid'],
    ['GET', '/api/tools?as=%ff', 400, 'query_invalid'],
    ['GET', '/api/tools?as=100%', 404, 'caller_unknown'],
    ['GET', '/api/tools?as=', 400, 'query_invalid'],
    ['GET', `/api/tools?as=${'a'.repeat(9000)}`, 400, 'query_invalid'],
    ['GET', `/api/session?${'a=1&'.repeat(2000)}`, 400, 'query_invalid'],
    ['GET', '/api/session?', 200, undefined],
    ['GET', '/api/openapi.json?x=1', 400, 'query_invalid'],
    ['GET', '/api/login?x=1', 400, 'query_invalid'],
    ['POST', '/api/login?x=1', 400, 'query_invalid'],
    ['POST', '/api/logout?x=1', 400, 'query_invalid'],
    ['PATCH', '/api/session', 405, 'method_not_allowed'],
    ['OPTIONS', '/api/session', 405, 'method_not_allowed'],
    ['PROPFIND', '/api/halts/a', 405, 'method_not_allowed'],
    ['get', '/api/session', 200, undefined],
    ['X', '/api/nothing', 404, 'route_unknown'],
  ] as const
  for (const [method, path, status, code] of table)
    it(`gets ${status} ${code ?? ''}: ${method} ${path.slice(0, 40)}`, async () => {
      const answer = await ask(world.api, method, path)
      const text = await answer.text()
      assert.equal(answer.status, status, text)
      assert.equal(answer.headers.get('content-type'), 'application/json')
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      if (method === 'HEAD') assert.equal(text, '')
      else if (code !== undefined) assert.equal((JSON.parse(text) as ErrorBody).error.code, code)
    })

  it('learns which methods are served, HEAD beside GET', async () => {
    for (const [path, allow] of [
      ['/api/session', 'GET, HEAD'],
      ['/api/halts', 'GET, HEAD, POST'],
      ['/api/halts/a', 'DELETE'],
    ] as const)
      assert.equal((await ask(world.api, 'PATCH', path)).headers.get('allow'), allow)
  })
})

type Schema = Readonly<Record<string, unknown>>
const weird = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    '\0',
    '\uD800',
    'a'.repeat(5000),
    -1,
    2 ** 53,
    1e300,
    null,
    true,
    [],
    {},
    '__proto__',
    '{}',
  ),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.jsonValue({ maxDepth: 2 }),
)
const known = fc.constantFrom(
  'files:read',
  'files:write',
  'owner',
  'vera',
  'acme',
  'desk',
  'files',
  '[{"allow":["*"]}]',
)

/** Values as a schema describes them, as far as the parser of schemas in this test reads. */
function valuesOf(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  const {
    $ref,
    anyOf,
    enum: words,
    const: only,
    type,
    items,
    properties,
    required,
    format,
  } = schema as {
    $ref?: string
    anyOf?: readonly Schema[]
    enum?: readonly unknown[]
    const?: unknown
    type?: string
    items?: Schema
    properties?: Readonly<Record<string, Schema>>
    required?: readonly string[]
    format?: string
  }
  if ($ref !== undefined) return valuesOf(schemaAt($ref), depth)
  if (anyOf) return fc.oneof(...anyOf.map((one) => valuesOf(one, depth)))
  if (words) return fc.constantFrom(...words)
  if (only !== undefined) return fc.constant(only)
  if (format !== undefined) return fc.constantFrom('2026-11-21T09:00:00Z', '2026-11-21')
  if (type === 'string') return fc.oneof(known, fc.string({ minLength: 1, maxLength: 20 }))
  if (type === 'integer' || type === 'number') return fc.integer({ min: 0, max: 1000 })
  if (type === 'boolean') return fc.boolean()
  if (type === 'array')
    return depth > 2 ? fc.constant([]) : fc.array(valuesOf(items ?? {}, depth + 1), { maxLength: 3 })
  if (type !== 'object' || depth > 2) return fc.jsonValue({ maxDepth: 1 })
  const fields = Object.entries(properties ?? {}).map(([name, one]) => [name, valuesOf(one, depth + 1)] as const)
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...(required ?? [])] })
}

function schemaAt(ref: string): Schema {
  return (openapi.document.components.schemas as Readonly<Record<string, Schema>>)[ref.split('/').at(-1) ?? ''] ?? {}
}

/** A valid value, or one with a field that is changed, added or left out. */
function mutated(values: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const changed = fc
    .tuple(values, fc.constantFrom('as', 'tool', 'nope', '__proto__'), fc.nat(), weird)
    .map(([value, name, at, other]) => {
      const fields = Object.entries(value as object)
      const key = fields[at % (fields.length + 1)]?.[0] ?? name
      return JSON.stringify(Object.fromEntries([...fields.filter(([field]) => field !== key), [key, other]]))
    })
  const valid = values.map((value) => JSON.stringify(value))
  const text = fc.oneof(
    weird.map((value) => JSON.stringify(value) ?? ''),
    fc.constantFrom('{', '{"a":1,"a":2}', ''),
  )
  return fc.oneof({ weight: 4, arbitrary: valid }, { weight: 4, arbitrary: changed }, { weight: 1, arbitrary: text })
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema?: Schema
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

function queriesOf(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const pairs = parameters.map(({ name, schema, content }) => {
    const json = content?.['application/json']?.schema
    const values = json ? valuesOf(json).map((value) => JSON.stringify(value)) : valuesOf(schema ?? {})
    const one = fc.oneof({ weight: 5, arbitrary: values }, { weight: 1, arbitrary: weird })
    return fc.option(
      one.map((value) => [name, textOf(value)] as const),
      { freq: 2, nil: undefined },
    )
  })
  const extra = fc.option(
    weird.map((value) => ['nope', textOf(value)] as const),
    { freq: 12, nil: undefined },
  )
  return fc
    .tuple(...pairs, extra)
    .map(
      (all) =>
        `?${new URLSearchParams(all.flatMap((pair) => (pair ? [[pair[0], pair[1].toWellFormed()] as [string, string]] : [])))}`,
    )
}

/** A gateway with OpenID Connect and with hosts serves these; `tests/contract.e2e.test.ts` asks it. */
const ELSEWHERE = /^\/api\/(?:oidc|runs)\b/
const operations = openapi.operations().filter(({ path }) => !ELSEWHERE.test(path))

const requests = fc.constantFrom(...operations).chain(({ method, path, operation }) => {
  const parameters = (operation.parameters ?? []) as readonly Parameter[]
  const body = operation.requestBody?.content?.['application/json']?.schema
  const ids = fc
    .oneof(known, fc.constantFrom('%00', '%zz', 'a/b', 'x'.repeat(3000)), fc.string({ minLength: 1 }))
    // Which are steps in a path.
    .filter((id) => id !== '.' && id !== '..')
  return fc.record({
    method: fc.constant(method),
    path: ids.map((id) => path.replace('{id}', encodeURIComponent(id.toWellFormed()))),
    query: queriesOf(parameters.filter((one) => one.in === 'query')),
    key: fc.constantFrom<keyof typeof KEYS>(
      ...(operation.tags.includes('agent') ? (['agent'] as const) : []),
      'person',
      'person',
      'tenant',
      'none',
    ),
    type: fc.oneof(
      { weight: 9, arbitrary: fc.constant('application/json') },
      { weight: 1, arbitrary: fc.constant('text/plain') },
    ),
    body: body ? mutated(valuesOf(body)) : fc.constant(undefined),
  })
})

const TO_DECIDE = { method: 'POST', path: '/api/decide', query: '', key: 'agent', type: 'application/json' } as const
const BODY = '{"tool":"files:read"}'
/** A few random requests may miss one of these answers: 200, 400, 401, 403, 404 and 415. */
const EXAMPLES: Parameters<typeof requests.filter>[0] extends (one: infer Sent) => unknown ? [Sent][] : never = [
  [{ ...TO_DECIDE, body: BODY }],
  [{ ...TO_DECIDE, body: '{}' }],
  [{ ...TO_DECIDE, body: BODY, key: 'none' }],
  [{ ...TO_DECIDE, body: BODY, key: 'person' }],
  [{ ...TO_DECIDE, body: undefined, method: 'DELETE', path: '/api/halts/nope', key: 'person' }],
  [{ ...TO_DECIDE, body: BODY, type: 'text/plain' }],
]

describe('the HTTP API', () => {
  it('answers whatever is sent as openapi.json says, and never with a fault of its own', async () => {
    const seen = new Set<number>()
    const codes = new Set([...Object.keys(API_FAULTS), ...Object.keys(FAULTS)])
    await fc.assert(
      fc.asyncProperty(requests, async ({ method, path, query, ...sent }) => {
        const answer = await ask(world.api, method, `${path}${query}`, sent)
        const { status } = answer
        const [text, type = ''] = [await answer.text(), answer.headers.get('content-type')?.split(';')[0]]
        seen.add(status)
        assert.ok(status < 500, `${status} ${text} ${String(world.faults.at(-1))}`)
        if (type === 'application/json') openapi.check({ method, path, status, body: JSON.parse(text) })
        else assert.ok(['application/x-ndjson', 'text/csv'].includes(type), type)
        if (status >= 400) assert.ok(codes.has((JSON.parse(text) as ErrorBody).error.code), text)
        for (const { id } of world.gate.halts) await world.gate.release({ id, by: 'owner' })
      }),
      { ...runs(1500), examples: EXAMPLES },
    )
    for (const status of [200, 400, 401, 403, 404, 415]) assert.ok(seen.has(status), `no ${status}`)
  })
})

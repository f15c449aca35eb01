import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AuditRecord } from '@toolgate/core/audit'
import type { CallersBody, PeopleBody, ToolsBody, WhyBody } from '@toolgate/gateway'

export const TOOLS: ToolsBody = {
  as: 'viewer',
  policyRevision: 1,
  catalogRevision: 2,
  kind: 'tool',
  tools: [
    {
      id: 'files:read',
      kind: 'tool',
      wireName: 'files__read',
      description: 'Reads',
      tags: ['read'],
      outcome: 'allow',
      visible: true,
      reasons: [],
    },
    {
      id: 'files:write',
      kind: 'tool',
      wireName: 'files__write',
      description: 'Writes',
      tags: [],
      outcome: 'deny',
      visible: false,
      reasons: [
        { layer: 'policy', code: 'policy_denied', outcome: 'deny', order: 0, text: 'baseline \u001b[2Jdenies it' },
      ],
    },
  ],
  servers: [
    { name: 'memory', status: 'down', reason: 'exited with code 1', since: 0, restarts: 3, toolCount: 0, rejected: [] },
  ],
  groups: [
    {
      name: 'lab',
      visibility: 'conditional',
      available: false,
      reason: 'nothing listens on 127.0.0.1:4444',
      suggestion: 'Open it.',
      tools: [],
    },
  ],
}

export const CALLERS: CallersBody = {
  callers: [{ user: 'viewer', roles: ['viewer'], for: 'mcp', visible: 1 }],
  total: 1,
}

const FROM = { by: 'token', issuer: 'https://id.example', at: Date.UTC(2026, 10, 28, 14, 3) } as const

const PEOPLE: PeopleBody = {
  people: [
    {
      name: 'corp/ann',
      as: 'corp/ann of acme',
      user: 'corp/ann',
      tenant: 'acme',
      label: 'Ann \u001b[2JAdams',
      callers: [],
      seenRoles: ['clerk'],
      rolesFrom: FROM,
      issuer: FROM.issuer,
      cameBy: 'token',
      firstSeenAt: 1,
      lastSeenAt: FROM.at,
      clients: ['app'],
      visible: 3,
      calls: 0,
      refused: 0,
    },
    {
      name: 'boss',
      user: 'boss',
      callers: [{ as: 'boss', for: 'console', roles: ['approver'] }],
      calls: 0,
      refused: 0,
    },
  ],
  total: 120,
  from: 0,
  tenants: ['acme'],
  roles: ['approver', 'clerk'],
  isComplete: true,
}

export function whyBody(tool: string): WhyBody {
  const row = TOOLS.tools.find(({ id }) => id === tool)
  return {
    tool,
    kind: 'tool',
    as: 'viewer',
    outcome: row?.outcome ?? 'deny',
    visible: row?.visible ?? false,
    reasons: row?.reasons ?? [],
    answers: [],
    ...(tool === 'web:search'
      ? { schemaWarnings: [{ pointer: '/properties/q/pattern', message: 'is not checked' }] }
      : {}),
    ...(tool === 'web:search' ? { may: ['sample', 'open https://login.example.com'] } : {}),
    ...(tool === 'files:signed' ? { rolesFrom: FROM } : {}),
    ...(tool === 'files:delete' ? { wouldAllow: WAYS } : {}),
    ...(tool === 'files:move' ? { outcome: 'allow' as const, visible: true, mayStill: MAY_STILL } : {}),
  }
}

const MAY_STILL: NonNullable<WhyBody['mayStill']> = [
  {
    layer: 'input',
    code: 'input_denied',
    outcome: 'deny',
    order: 0,
    text: 'policy "baseline" denies files:move, where input.to == \'/etc\'',
    place: { file: 'toolgate.yaml', line: 7, column: 9 },
    hits: 0,
    countedSince: 0,
    on: 'input',
    example: { to: '/etc' },
  },
  {
    layer: 'limits',
    code: 'rate_limited',
    outcome: 'wait',
    order: 0,
    text: 'the limit *:2/60 is used up',
    on: 'now',
    resetMs: 5000,
  },
]

const WAYS: NonNullable<WhyBody['wouldAllow']> = [
  [
    { on: 'caller', does: 'add', field: 'roles', value: 'operator', text: '`operator` in `roles`' },
    { on: 'state', does: 'release', text: 'the group `web` available' },
  ],
  [
    {
      on: 'policy',
      does: 'remove',
      path: 'policy[0].deny[1]',
      text: '`files#deny[1]` removed, or narrowed',
      place: { file: 'toolgate.yaml', line: 12, column: 7 },
    },
  ],
]

export function auditRecord(seq: number): AuditRecord {
  return {
    seq,
    event: seq % 2 === 0 ? 'tool_blocked' : 'tool_result',
    ts: `2026-11-21T10:00:0${seq % 10}.000Z`,
    tool: 'files:read',
    tool_call_id: `call-${seq}`,
    user_id: 'viewer',
    policy_revision: 1,
    catalog_revision: 1,
    ...(seq % 2 === 0 ? { reason: 'policy_denied' } : { duration_ms: 12.4, input_preview: 'a\u2028b' }),
  }
}

export interface FakeGateway {
  readonly url: string
  readonly requests: URL[]
  readonly records: AuditRecord[]
  close(): void
}

/** Serves a gateway's API on a port, with the key `demo-console`. */
export async function fakeGateway(): Promise<FakeGateway> {
  const requests: URL[] = []
  const records: AuditRecord[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://gateway')
    requests.push(url)
    if (url.pathname === '/api/audit/export' && request.headers.authorization === 'Bearer demo-console') {
      response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
      response.end(records.map((record) => `${JSON.stringify(record)}\n`).join(''))
      return
    }
    const [status, body] = answer(url, request.headers.authorization, records)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    records,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

function answer(url: URL, authorization: string | undefined, records: readonly AuditRecord[]): [number, object] {
  const fault = (status: number, code: string, message: string): [number, object] => [
    status,
    { error: { code, message } },
  ]
  if (authorization === 'Bearer demo-viewer') return fault(403, 'key_not_for_console', "This is an agent's key.")
  if (authorization !== 'Bearer demo-console') return fault(401, 'unauthenticated', 'The key is not known.')
  const query = url.searchParams
  if (query.get('as') === 'nobody') return fault(404, 'caller_unknown', 'No caller is named "nobody".')
  switch (url.pathname) {
    case '/api/tools':
      return [200, TOOLS]
    case '/api/people':
      return [200, PEOPLE]
    case '/api/callers':
      return [200, CALLERS]
    case '/api/why':
      if (query.get('tool') === 'broken') return fault(500, 'internal', 'The gateway failed to answer.')
      return [200, whyBody(query.get('tool') ?? '')]
    case '/api/audit': {
      const after = Number(query.get('after') ?? 0)
      const before = Number(query.get('before') ?? Infinity)
      const found = records.filter(({ seq }) => seq > after && seq < before).toReversed()
      return [200, { records: found.slice(0, Number(query.get('limit') ?? 100)) }]
    }
    default:
      return fault(404, 'route_unknown', 'There is no such route.')
  }
}

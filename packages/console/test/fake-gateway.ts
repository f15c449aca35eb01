import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import {
  type Approval,
  type Caller,
  type Decision,
  createGate,
  defineTool,
  type OutcomeWord,
  type Reason,
  type Tool,
  ToolgateError,
  type View,
} from '@toolgate/core'
import { type AuditEvent, type AuditRecord, createOutcomeTally, matchesAuditQuery } from '@toolgate/core/audit'
import { createApprovals } from '@toolgate/core/call'
import { redactor } from '@toolgate/values/redact'
import type { ApprovalFilter, ApprovalVerdict } from '@toolgate/core/stores'
import { defineResource } from '@toolgate/core/toolset'
import { createConsole } from '../../gateway/src/admin/console/console.ts'
import { admitToSocket } from '../../gateway/src/admin/http/access.ts'
import { room as login } from '../../gateway/src/admin/login/routes.ts'
import { needsRoute } from '../../gateway/src/admin/groups/routes.ts'
import { logsRoute } from '../../gateway/src/admin/servers/logs.ts'
import { openPages } from '../../gateway/src/compose/open-pages.ts'
import type { Heart } from '../../gateway/src/heart/heart.ts'
import type { ListedRoom, Room } from '../../gateway/src/heart/room.ts'
import { Rooms } from '../../gateway/src/heart/rooms.ts'
import type { Route } from '../../gateway/src/heart/route.ts'
import { ApiFault } from '../../gateway/src/model/faults.ts'
import { heartOf, PEOPLE } from '../../gateway/src/testing/heart.ts'
import type { GroupRow, NeedRow, ServerRow, WarningRow } from '../../gateway/src/model/rows.ts'
import { createOriginRules } from '../../gateway/src/auth/origin.ts'
import type { CallerConfig } from '../../gateway/src/config/config.ts'
import type { WatchedGroupChange } from '../../gateway/src/admin/groups/group-watch.ts'
import { createLiveSocket } from '../../gateway/src/admin/live/live-socket.ts'
import { outcomeOf } from '../src/audit-feed.ts'

type Budgets = Awaited<ReturnType<Heart['gate']['budgets']>>

/** A gateway's API and console on a real port, with fake dependencies. */
export interface FakeGateway {
  readonly url: string
  readonly port: number
  /** Opens or closes the port that the group `web` depends on. */
  setWeb(available: boolean): void
  /** Adds records to the audit. */
  record(count: number): void
  /** Adds the records of `run-7`, which reads a page and may then not send mail. */
  recordRun(): void
  /** Sets what is left of budgets. */
  setBudgets(budgets: Budgets): void
  /** The received verdicts. */
  readonly verdicts: readonly {
    readonly id: string
    readonly decision: string
    readonly by: string
    readonly reason: string | undefined
  }[]
  /** Answers every request with 500 while true. */
  setBroken(broken: boolean): void
  /** Adds a pending approval. */
  ask(id: string, tenant?: string, about?: Partial<Approval>): void
  /** The paths of the requests, for tests that count them. */
  readonly asked: readonly string[]
  close(): Promise<void>
}

export interface FakeOptions {
  readonly consoleDir: string
  readonly port?: number
  /** Starts with no audit, no approvals and no tools. */
  readonly empty?: boolean
  /** The warnings of `/api/warnings`. Default: none. */
  readonly warnings?: readonly WarningRow[]
  /** Refuses the live socket, as some proxies do. */
  readonly withoutSocket?: boolean
  /** The number of generated tools, in addition to the named ones. */
  readonly moreTools?: number
  /** Default 260. */
  readonly recordCount?: number
  /** The number of generated waiting approvals, in addition to the named ones. */
  readonly moreApprovals?: number
}

export const HOSTILE_NAME = '<script>document.title="owned"</script>'
export const BIDI_TEXT = 'report\u202Efdp.exe'

export async function startFakeGateway(options: FakeOptions): Promise<FakeGateway> {
  const { consoleDir, port = 0, withoutSocket = false } = options
  const site = createConsole(consoleDir)
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: got } = server.address() as AddressInfo
  const world = makeWorld(got, options)
  const rooms = new Rooms(await roomsOf(world.fakes), world.heart)
  const api = await openPages(rooms, world.heart, () => false)
  const access = rooms.ask(login)?.access
  if (!access) throw new Error('nobody can log in')
  const asked: string[] = []
  const listener = getRequestListener(async (request) => {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith('/api/')) return site.fetch(request)
    asked.push(pathname)
    return api.fetch(request)
  })
  server.on('request', (incoming, outgoing) => void listener(incoming, outgoing))
  const live = createLiveSocket({
    admit: (request) => admitToSocket(request, access),
    groups: () => world.groups(),
    groupWatch: { subscribe: world.onGroups },
    audit: world.heart.stores.audit,
    approvals: world.heart.gate.approvals,
    redact: redactor,
    onFault: () => {},
  })
  server.on('upgrade', (request, socket, head) => {
    if (withoutSocket) socket.destroy()
    else void live.upgrade(request, socket, head)
  })
  return {
    ...world.controls,
    asked,
    url: `http://127.0.0.1:${got}`,
    port: got,
    async close() {
      // A test that restarts it has closed it.
      if (!server.listening) return
      live.close()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Returns the rooms of people, with those of a test in the place of their own. */
async function roomsOf(fakes: readonly Room[]): Promise<readonly ListedRoom[]> {
  const own = await Promise.all(PEOPLE.map(async ({ people }) => (await people?.())?.room))
  const others = own.flatMap((room) => (room && !fakes.some(({ name }) => name === room.name) ? [room] : []))
  return [...fakes, ...others].map((room) => ({ people: async () => ({ room }) }))
}

function page(path: string, body: () => object): Route {
  return { method: 'GET', path, by: 'person', answer: body }
}

function makeWorld(
  port: number,
  { empty = false, moreTools = 0, recordCount = 260, moreApprovals = 0, warnings = [] }: FakeOptions,
) {
  const startedAt = Date.now() - 3 * 60_000
  const tools = empty ? [] : [...makeTools(), ...makeMoreTools(moreTools)]
  const records: AuditRecord[] = []
  let budgets: Budgets = []
  const groupListeners = new Set<(changes: readonly WatchedGroupChange[]) => void>()
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
  const approvals = new Map(
    (empty ? [] : [...makeApprovals(), ...makeMoreApprovals(moreApprovals)]).map((approval) => [approval.id, approval]),
  )
  const verdicts: { id: string; decision: string; by: string; reason: string | undefined }[] = []
  let isWeb = false
  let webSince = startedAt
  let isBroken = false
  if (!empty) record(recordCount)

  /** Oldest first, so that 100,000 can be added at once. */
  function record(count: number): void {
    const now = Date.now()
    for (let i = 0; i < count; i++)
      records.push(makeRecord(records.length + 1, now - (count - i) * Math.min(700, 170_000 / count), tools))
  }

  const callers = [
    key('demo-viewer', 'mcp', { user: 'viewer', roles: ['viewer'] }),
    key('demo-operator', 'mcp', { user: 'operator', roles: ['operator'] }),
    key('demo-admin', 'mcp', { user: 'admin', roles: ['admin'] }),
    key('demo-console', 'console', { user: 'owner', roles: ['approver'] }),
    key('demo-looker', 'console', { user: 'looker', roles: [] }),
  ]
  const groups = (): readonly GroupRow[] => [
    { name: 'notes', visibility: 'always', available: true, badge: 'always', tools: empty ? [] : NOTES },
    {
      name: 'web',
      title: 'Web pages',
      visibility: 'conditional',
      available: isWeb,
      badge: isWeb ? 'available' : 'unavailable',
      hint: 'Pictures and archives.',
      dependsOn: ['everything'],
      ...(isWeb
        ? {}
        : {
            reason: 'nothing listens on 127.0.0.1:4444 (ECONNREFUSED)',
            suggestion: 'Start something on port 4444: npx http-server -p 4444',
          }),
      since: webSince,
      tools: ['everything:get-tiny-image', 'everything:gzip-file-as-resource'],
    },
  ]
  const servers = (): readonly ServerRow[] => [
    {
      name: 'everything',
      status: 'ready',
      since: startedAt,
      restarts: 0,
      toolCount: 5,
      era: 'legacy',
      rejected: [
        { kind: 'tool', name: 'simulate-research-query', reason: 'it needs tasks, which are not offered yet' },
      ],
    },
    {
      name: 'files',
      status: 'ready',
      since: startedAt,
      restarts: 1,
      toolCount: 6,
      era: 'legacy',
      rejected: [],
      instances: {
        starting: 0,
        running: 1,
        idle: 1,
        down: 0,
        users: [
          { user: 'vera', tenant: 'acme', state: 'running' },
          { user: HOSTILE_NAME, state: 'idle' },
        ],
      },
    },
    { name: 'memory', status: 'ready', since: startedAt, restarts: 0, toolCount: 4, era: 'legacy', rejected: [] },
    {
      name: 'remote',
      status: 'down',
      reason: 'exited with code 1 (Error: REMOTE_TOKEN is wrong)',
      since: startedAt,
      restarts: 4,
      toolCount: 0,
      rejected: [],
    },
  ]
  const logs = (server: string) =>
    server === 'remote'
      ? ['starting', 'Error: REMOTE_TOKEN is wrong', '    at connect (remote.js:12)', HOSTILE_NAME].map((text, i) => ({
          seq: i,
          wallMs: startedAt,
          level: 'stderr' as const,
          text,
        }))
      : []
  const audit: Pick<Heart['stores']['audit'], 'query' | 'countOutcomes' | 'exportRecords'> = {
    query: ({ limit = 100, tool, user, event, outcome, call, run, beforeSeq, afterSeq }) => {
      if (isBroken) throw new Error('broken on purpose')
      const found: AuditRecord[] = []
      const from = Math.min(records.length, (beforeSeq ?? Infinity) - 1)
      for (let seq = from; seq > (afterSeq ?? 0) && found.length < limit; seq--) {
        const one = records[seq - 1] as AuditRecord
        if (
          (tool === undefined || one.tool === tool) &&
          (user === undefined || one.user_id === user) &&
          (event === undefined || one.event === event) &&
          (call === undefined || one.tool_call_id === call) &&
          (run === undefined || one.run_id === run) &&
          (outcome === undefined || outcomeOf(one) === outcome)
        )
          found.push(one)
      }
      return found
    },
    countOutcomes(query) {
      if (isBroken) throw new Error('broken on purpose')
      const tally = createOutcomeTally(query)
      for (const one of records) {
        const outcome = outcomeOf(one)
        if (outcome !== undefined && matchesAuditQuery(one, query)) tally.add(Date.parse(one.ts), outcome)
      }
      return tally.counts(records.length)
    },
    async *exportRecords({ afterSeq = 0 } = {}) {
      yield* records.slice(afterSeq)
    },
  }
  const shown = createApprovals({
    clock,
    approvals: {
      list: ({ status, before }: ApprovalFilter) => {
        if (isBroken) throw new Error('broken on purpose')
        const all = [...approvals.values()].filter((one) => status === undefined || one.status === status)
        return before === undefined ? all : all.slice(all.findIndex(({ id }) => id === before) + 1)
      },
      get: (id: string) => approvals.get(id),
      decide(id: string, verdict: ApprovalVerdict) {
        const approval = approvals.get(id) as Approval
        const from = verdict.decision === 'revoke' ? 'approved' : 'pending'
        if (approval.status !== from) throw new ToolgateError('approval_decided', 'Somebody has decided this already.')
        verdicts.push({ id, decision: verdict.decision, by: verdict.by, reason: verdict.reason })
        const { by, atMs, reason } = verdict
        const status = DECIDED[verdict.decision]
        const decided: Approval = {
          ...approval,
          status,
          decidedBy: by,
          decidedAt: atMs,
          ...(reason === undefined ? {} : { reason }),
        }
        approvals.set(id, decided)
        recordAbout('approval_decided', id)
        return decided
      },
    },
  })
  const needs = (): readonly NeedRow[] => [
    { kind: 'server', what: 'the server memory', groups: [], state: 'available', since: startedAt },
    {
      kind: 'tcp',
      what: '127.0.0.1:4444',
      groups: ['web', 'notes'],
      since: webSince,
      ...(isWeb
        ? { state: 'available' }
        : {
            state: 'unavailable',
            reason: 'nothing listens on 127.0.0.1:4444 (ECONNREFUSED)',
            suggestion: 'Start something on port 4444: npx http-server -p 4444',
          }),
    },
    {
      kind: 'env',
      what: `the environment variable ${HOSTILE_NAME}`,
      groups: ['notes'],
      state: 'unknown',
      reason: 'it has not been checked yet',
      since: startedAt,
    },
  ]
  const items = { snapshot: { tools }, items: { tools: RESOURCES } }
  const gate = {
    policyRevision: 4,
    view(caller: Caller) {
      if (isBroken) throw new Error('broken on purpose')
      // Of this view only the rules are read.
      if (Object.keys(caller).length === 0) return ruled.view(caller)
      return makeView(caller, [...tools, ...RESOURCES], isWeb, webSince)
    },
    catalog: {
      revision: 9,
      own: [],
      get: (id: string) => tools.find((tool) => tool.id === id),
      snapshot: () => items.snapshot,
      items: () => items.items,
      of: () => items,
    },
    approvals: shown,
    grants: { rules: undefined, problem: () => undefined, list: () => [] },
    halts: [],
    subscribe: () => () => {},
    budgets: async () => budgets,
    pins: { list: () => [] },
    preferences: {
      get: () => ({ tools: [], groups: [] }),
      set: async () => {
        throw new ApiFault('preferences_forbidden', 'Nothing can be switched off here.')
      },
    },
  }
  const heart = heartOf({
    // What the rooms of people use of it.
    gate: gate as object as Heart['gate'],
    callers,
    clock,
    audit,
    config: { limits: ['*:100/60'] },
    fleet: { rows: servers, logs: { of: logs } },
    door: {
      port,
      origins: createOriginRules({ host: '127.0.0.1', port }),
      keys: { list: () => [], isExpired: () => false } as object as Heart['door']['keys'],
    },
  })
  const fakes: readonly Room[] = [
    {
      name: 'groups',
      open: () => ({
        service: { rows: groups, refresh: () => {} },
        routes: [
          page('/api/groups', () => ({ groups: groups() })),
          page('/api/apps', () => ({ apps: empty ? [] : [APP] })),
          { method: 'GET', path: '/api/needs', by: 'person', answer: needsRoute(needs) },
        ],
      }),
    },
    {
      name: 'servers',
      open: () => ({
        routes: [
          page('/api/servers', () => ({ servers: servers(), mayOperate: false })),
          { method: 'GET', path: '/api/logs', by: 'person', answer: logsRoute(heart) },
        ],
      }),
    },
    { name: 'halts', open: () => ({ routes: [page('/api/halts', () => ({ halts: [], mayHalt: false }))] }) },
    { name: 'warnings', open: () => ({ routes: [page('/api/warnings', () => ({ warnings }))] }) },
  ]
  const controls = {
    verdicts,
    record,
    recordRun,
    setBudgets(next: typeof budgets) {
      budgets = next
    },
    setWeb(available: boolean) {
      isWeb = available
      webSince = Date.now()
      for (const listener of groupListeners) listener([{ name: 'web', before: undefined, now: { available } }])
    },
    ask(id: string, tenant?: string, about: Partial<Approval> = {}) {
      const now = Date.now()
      const approval: Approval = {
        ...(makeApprovals()[0] as Approval),
        id,
        tool: 'files:move_file',
        input: { id },
        inputHash: id,
        tenant,
        requestedAt: now,
        expiresAt: now + 600_000,
        ...about,
      }
      approvals.set(id, approval)
      recordAbout('tool_approval_required', id)
    },
    setBroken(broken: boolean) {
      isBroken = broken
    },
  }
  return {
    heart,
    fakes,
    groups,
    controls,
    onGroups(listener: (changes: readonly WatchedGroupChange[]) => void) {
      groupListeners.add(listener)
      return () => void groupListeners.delete(listener)
    },
  }

  /** A run that reads a page, and may then not send mail. */
  function recordRun(): void {
    const now = Date.now()
    const operands = JSON.stringify([
      {
        kind: 'origin',
        of: 'addressees',
        origin: 'untrusted',
        values: [{ field: 'to', value: `eve${BIDI_TEXT}`, origin: 'untrusted' }],
      },
    ])
    const steps: readonly Partial<AuditRecord>[] = [
      { event: 'run_started', user_id: 'vera', actor: 'runner', reason: 'root' },
      { event: 'tool_result', tool: 'crm:find', labels: 'private', duration_ms: 12 },
      { event: 'tool_result', tool: 'web:fetch', labels: 'untrusted', input_preview: '{"url":"https://evil.example"}' },
      { event: 'tool_blocked', tool: 'mail:send', run_labels: 'private untrusted', reason: 'input_denied', operands },
    ]
    for (const [i, step] of steps.entries()) {
      const seq = records.length + 1
      const ts = new Date(now - 4000 + i * 1000).toISOString()
      const base = { seq, ts, run_id: 'run-7', tool_call_id: `run-${i}`, policy_revision: 4, catalog_revision: 9 }
      records.push({ ...base, event: 'tool_result', user_id: 'vera', ...step })
    }
  }

  function recordAbout(event: AuditRecord['event'], id: string): void {
    records.push({ ...makeRecord(records.length + 1, Date.now(), tools), event, approval_id: id })
  }
}

const DECIDED = { approve: 'approved', reject: 'rejected', revoke: 'revoked' } as const

const NOTES = ['memory:open_nodes', 'memory:read_graph', 'memory:search_nodes']
const APP = {
  name: 'research',
  title: 'Research',
  path: '/mcp/research',
  groups: ['notes'],
  tools: [...NOTES, 'files:read_text_file'],
  available: 4,
}

function makeMoreTools(count: number): Tool[] {
  return Array.from({ length: count }, (_, i) =>
    defineTool({
      namespace: `bulk${i % 20}`,
      name: `tool_${String(i).padStart(4, '0')}`,
      description: `Number ${i}. It does what tools do, and says so at some length.`,
      tags: i % 2 === 0 ? ['read'] : ['write'],
    }),
  )
}

const INPUT_SCHEMA = {
  type: 'object',
  properties: {
    path: { type: 'string', description: BIDI_TEXT },
    site: { type: 'string', format: 'uri' },
    either: { oneOf: [{ type: 'string' }, { type: 'integer' }] },
  },
  required: ['path'],
}

function makeTools(): Tool[] {
  const define = (namespace: string, name: string, description: string, tags: string[] = [], title?: string): Tool =>
    defineTool({ namespace, name, description, tags, title, inputSchema: INPUT_SCHEMA })
  return [
    define('everything', 'echo', 'Echoes back the input string', ['read'], 'Echo Tool'),
    define(
      'everything',
      'get-env',
      'Returns all environment variables, helpful for debugging MCP server configuration',
      ['read'],
      'Print Environment Tool',
    ),
    define('everything', 'get-sum', 'Returns the sum of two numbers', ['read'], 'Get Sum Tool'),
    define('everything', 'get-tiny-image', 'Returns a tiny MCP logo image.', ['read', 'web'], 'Get Tiny Image Tool'),
    define('everything', 'gzip-file-as-resource', 'Compresses a single file using gzip compression.', ['web']),
    define(
      'files',
      'edit_file',
      'Make line-based edits to a text file. Each edit replaces exact line sequences with new content. Returns a git-style diff showing the changes made. Only works within allowed directories.\n\nA dry run is possible.',
      ['write'],
    ),
    define('files', 'list_directory', 'Get a detailed listing of all files and directories in a specified path.', [
      'read',
    ]),
    define('files', 'move_file', 'Move or rename files and directories.', ['write']),
    define('files', 'read_text_file', 'Read the complete contents of a file from the file system as text.', ['read']),
    define('files', 'search_files', 'Recursively search for files and directories matching a pattern.', ['read']),
    define(
      'files',
      'write_file',
      'Create a new file or completely overwrite an existing file with new content. Use with caution as it will overwrite existing files without warning.',
      ['write'],
    ),
    define(
      'memory',
      'delete_entities',
      `Delete multiple entities. ${HOSTILE_NAME} ${BIDI_TEXT}`,
      ['write'],
      HOSTILE_NAME,
    ),
    define('memory', 'open_nodes', 'Open specific nodes in the knowledge graph by their names', ['read']),
    define('memory', 'forget', 'Forgets what it was told', ['read']),
    define('memory', 'read_graph', 'Read the entire knowledge graph', ['read']),
    define('memory', 'search_nodes', 'Search for nodes in the knowledge graph based on a query', ['read']),
  ]
}

const DESTRUCTIVE = new Set(['files:edit_file', 'files:move_file', 'files:write_file', 'memory:delete_entities'])

/** A gate whose rule may read everything of a caller, as the decisions of the fake views do. */
const ruled = createGate({ tools: {}, policy: [{ name: 'fake', decide: () => 'allow' }] })

const RESOURCES: readonly Tool[] = [
  defineResource({ uri: 'file:///docs/plan.md', namespace: 'files', tags: ['read'] }),
  defineResource({ uri: 'file:///docs/secret.md', namespace: 'files' }),
]

function makeView(caller: Caller, tools: readonly Tool[], isWeb: boolean, webSince: number): View {
  const decide = (tool: Tool | undefined): Decision => {
    const reasons: Reason[] = tool
      ? [...reasonsFor(caller, tool, isWeb, webSince)]
      : [why('catalog', 'tool_not_found', 'deny', 'no tool has this id')]
    return { outcome: reasons[0]?.outcome ?? 'allow', reasons }
  }
  const byId = new Map(tools.map((tool) => [tool.id, tool]))
  const visible = tools.filter((tool) => ['allow', 'ask'].includes(decide(tool).outcome))
  const ids = visible.filter(({ kind }) => kind === 'tool').map(({ id }) => id)
  const view: Partial<View> = {
    caller,
    ids,
    tools: visible.filter(({ kind }) => kind === 'tool'),
    size: ids.length,
    has: (id: string) => visible.some((one) => one.id === id),
    explain: (id: string) => ({ ...decide(byId.get(id)), answers: [], mayStill: [] }),
  }
  return view as View
}

function* reasonsFor(caller: Caller, tool: Tool, isWeb: boolean, since: number): Generator<Reason> {
  const role = caller.roles?.[0] ?? ''
  if (role === 'viewer' && !tool.tags.includes('read'))
    yield why(
      'policy',
      'policy_not_allowed',
      'deny',
      'policy "viewers read" allows tag:read to role viewer, and no clause of its allow list holds',
    )
  if (tool.id === 'everything:get-env' && role !== 'admin')
    yield {
      ...why(
        'policy',
        'policy_denied',
        'deny',
        'policy "secrets", clause "no environment": everything:get-env is denied unless \'admin\' in caller.roles',
      ),
      message: 'The environment is for admins.',
    }
  if (role !== 'admin' && role !== 'viewer' && tool.id === 'memory:delete_entities')
    yield why(
      'policy',
      'policy_denied',
      'deny',
      'policy "baseline", clause 1: hint:destructive is denied unless \'admin\' in caller.roles',
    )
  if (tool.tags.includes('web') && !isWeb)
    yield {
      ...why('availability', 'group_unavailable', 'wait', 'nothing listens on 127.0.0.1:4444 (ECONNREFUSED)'),
      group: 'web',
      suggestion: 'Start something on port 4444: npx http-server -p 4444',
      since,
    }
  if (tool.id === 'memory:forget')
    yield { ...why('halts', 'halted', 'wait', 'halted by olga: it forgot too much'), since }
  if (tool.id === 'files:search_files')
    yield why('pins', 'tool_suspended', 'wait', 'its definition has changed since it was accepted')
  if (role !== 'viewer' && tool.id === 'files:write_file')
    yield why(
      'policy',
      'policy_ask',
      'ask',
      'policy "writes", clause "a person looks first": a person must approve files:write_file',
    )
  if (role === 'admin' && DESTRUCTIVE.has(tool.id) && tool.namespace === 'memory')
    yield why('policy', 'policy_ask', 'ask', 'policy "writes": a person must approve memory:delete_entities')
}

function why(layer: Reason['layer'], code: Reason['code'], outcome: OutcomeWord, text: string): Reason {
  return { layer, code, outcome, order: 0, text }
}

const EVENTS: readonly AuditEvent[] = [
  'tool_call',
  'tool_result',
  'tool_call',
  'tool_result',
  'tool_blocked',
  'tool_call',
  'tool_result',
  'tool_rate_limited',
  'tool_approval_required',
  'tool_call',
  'tool_abandoned',
]

function makeRecord(seq: number, wallMs: number, tools: readonly Tool[]): AuditRecord {
  const event = EVENTS[seq % EVENTS.length] ?? 'tool_call'
  const tool =
    event === 'tool_blocked' && seq % 3 === 0
      ? HOSTILE_NAME
      : (tools[(seq * 7) % Math.max(1, tools.length)]?.id ?? 'files:read_text_file')
  const more: Partial<AuditRecord> = {
    ...(event === 'tool_result' ? { duration_ms: (seq * 37) % 1900 } : {}),
    ...(event === 'tool_result' && seq % 8 === 0 ? { error: 'ENOENT: no such file or directory, open notes.txt' } : {}),
    ...(event === 'tool_blocked'
      ? { reason: 'policy_not_allowed', detail: 'policy "viewers read": no clause of its allow list holds' }
      : {}),
    ...(event === 'tool_rate_limited' ? { reason: 'rate_limited', limit: '5/60', reset_ms: 13_400 } : {}),
    ...(event === 'tool_approval_required' ? { reason: 'approval_required', approval_id: 'a1' } : {}),
    ...(event === 'tool_abandoned' ? { reason: 'tool_aborted', error: 'the client went away', duration_ms: 5120 } : {}),
  }
  return {
    seq,
    event,
    ts: new Date(wallMs).toISOString(),
    tool,
    tool_call_id: `c${event === 'tool_result' ? seq - 1 : seq}`,
    user_id: ['viewer', 'operator', 'admin'][seq % 3] as string,
    policy_revision: 4,
    catalog_revision: 9,
    ...more,
  }
}

function makeApprovals(): Approval[] {
  const now = Date.now()
  const base = {
    tenant: undefined,
    definitionHash: 'd',
    run: undefined,
    requestedAt: now - 40_000,
    expiresAt: now + 560_000,
  }
  return [
    {
      ...base,
      id: 'a1',
      inputHash: 'i1',
      user: 'operator',
      tool: 'files:write_file',
      status: 'pending',
      input: {
        path: `workspace/${BIDI_TEXT}`,
        content: 'Dear team,\n\nthe figures are in.\u200B\n<script>alert(1)</script>\n',
      },
    },
    {
      ...base,
      id: 'a2',
      inputHash: 'i2',
      user: 'admin',
      tenant: undefined,
      run: 'run-7',
      tool: 'memory:delete_entities',
      status: 'pending',
      trail: {
        read: [{ label: 'untrusted', calls: [{ tool: 'web:fetch', atMs: now - 55_000 }] }],
        sends: [
          { field: 'to', value: `eve@evil.example${BIDI_TEXT}`, origin: 'untrusted' },
          { field: 'cc', value: 'ann@acme.example', origin: 'user' },
        ],
      },
      input: { entityNames: ['vera', 'Acme GmbH'] },
    },
    {
      ...base,
      id: 'a3',
      inputHash: 'i3',
      user: 'operator',
      tool: 'files:write_file',
      status: 'consumed',
      input: {},
      decidedAt: now - 90_000,
      decidedBy: 'owner',
    },
    {
      ...base,
      id: 'a4',
      inputHash: 'i4',
      user: 'operator',
      tool: 'files:write_file',
      status: 'rejected',
      input: {},
      decidedAt: now - 180_000,
      decidedBy: 'owner',
      reason: 'Not into the release notes, please.',
    },
  ]
}

const EDIT = {
  path: 'src/settings.ts',
  edits: [
    {
      oldText: "export const settings = {\n\tretries: 3,\n\ttimeout: '10s',\n}",
      newText: "export const settings = {\n\tretries: 5,\n\ttimeout: '10s',\n\tverbose: true,\n}",
    },
  ],
}

/** Oldest first: edits, of which three in ten are the same, by a few callers in many runs. */
function makeMoreApprovals(count: number): Approval[] {
  const now = Date.now()
  return Array.from({ length: count }, (_, i) => {
    const isEqual = i % 10 < 3
    return {
      id: `more${i}`,
      user: ['operator', 'admin', 'viewer'][i % 3],
      tenant: undefined,
      tool: i % 4 === 3 ? 'files:move_file' : 'files:edit_file',
      status: 'pending',
      definitionHash: 'd',
      inputHash: isEqual && i % 4 !== 3 ? `same ${Math.floor(i / 40)}` : `own ${i}`,
      run: `run-${100 + (i % 40)}`,
      why: 'policy "writes", clause "a person looks first": the run has read private data.',
      input: i % 4 === 3 ? { source: `notes/${i}.txt`, destination: `archive/${i}.txt` } : EDIT,
      requestedAt: now - 300_000 + i * 400,
      expiresAt: now + 300_000 + i * 400,
    }
  })
}

function key(text: string, kind: 'mcp' | 'console', caller: Caller): CallerConfig {
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}

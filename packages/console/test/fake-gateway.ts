import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import {
  type Approval,
  type ApprovalVerdict,
  type AuditEvent,
  type AuditRecord,
  type Caller,
  createApprovals,
  type Decision,
  defineTool,
  type OutcomeWord,
  type Reason,
  type Tool,
  ToolgateError,
  type View,
} from '@toolgate/core'
import { type ApiDeps, createApi, createConsole } from '../../gateway/src/api/index.ts'
import { createKeyring, createOriginRules } from '../../gateway/src/auth/index.ts'
import type { CallerConfig } from '../../gateway/src/config/config.ts'

/** A gateway's API and console on a real port, over deps made up for the occasion. */
export interface FakeGateway {
  readonly url: string
  readonly port: number
  /** Opens or closes the port that the group `web` depends on. */
  setWeb(available: boolean): void
  /** Puts records into the audit. */
  record(count: number): void
  /** The verdicts that arrived. */
  readonly verdicts: readonly {
    readonly id: string
    readonly decision: string
    readonly by: string
    readonly reason: string | undefined
  }[]
  /** Answers every request with 500 while true. */
  setBroken(broken: boolean): void
  close(): Promise<void>
}

export interface FakeOptions {
  readonly consoleDir: string
  readonly port?: number
  /** Starts with no audit, no approvals and no tools. */
  readonly empty?: boolean
}

export const HOSTILE_NAME = '<script>document.title="owned"</script>'
export const BIDI_TEXT = 'report\u202Efdp.exe'

export async function startFakeGateway({ consoleDir, port = 0, empty = false }: FakeOptions): Promise<FakeGateway> {
  const site = createConsole(consoleDir)
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const { port: got } = server.address() as AddressInfo
  const world = makeWorld(got, empty)
  const api = createApi(world.deps)
  const listener = getRequestListener((request) =>
    new URL(request.url).pathname.startsWith('/api/') ? api.fetch(request) : site.fetch(request),
  )
  server.on('request', (incoming, outgoing) => void listener(incoming, outgoing))
  return {
    ...world.controls,
    url: `http://127.0.0.1:${got}`,
    port: got,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function makeWorld(port: number, empty: boolean) {
  const startedAt = Date.now() - 3 * 60_000
  const tools = empty ? [] : makeTools()
  const records: AuditRecord[] = []
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
  const approvals = new Map((empty ? [] : makeApprovals()).map((approval) => [approval.id, approval]))
  const verdicts: { id: string; decision: string; by: string; reason: string | undefined }[] = []
  let isWeb = false
  let webSince = startedAt
  let isBroken = false
  if (!empty) record(260)

  function record(count: number): void {
    for (let i = 0; i < count; i++)
      records.unshift(makeRecord(records.length + 1, startedAt + records.length * 700, tools))
  }

  const callers = [
    key('demo-viewer', 'mcp', { user: 'viewer', roles: ['viewer'] }),
    key('demo-operator', 'mcp', { user: 'operator', roles: ['operator'] }),
    key('demo-admin', 'mcp', { user: 'admin', roles: ['admin'] }),
    key('demo-console', 'console', { user: 'owner', roles: ['approver'] }),
    key('demo-looker', 'console', { user: 'looker', roles: [] }),
  ]
  const deps: ApiDeps = {
    keyring: createKeyring(callers),
    origins: createOriginRules({ host: '127.0.0.1', port }),
    callers,
    cookieName: `toolgate_session_${port}`,
    view(caller) {
      if (isBroken) throw new Error('broken on purpose')
      return makeView(caller, tools, isWeb, webSince)
    },
    tools: () => tools,
    wireName: (id) => id.replace(':', '__'),
    groups: () => [
      {
        name: 'web',
        title: 'Web pages',
        visibility: 'conditional',
        available: isWeb,
        ...(isWeb
          ? {}
          : {
              reason: 'nothing listens on 127.0.0.1:4444 (ECONNREFUSED)',
              suggestion: 'Start something on port 4444: npx http-server -p 4444',
            }),
        since: webSince,
        tools: ['everything:get-tiny-image', 'everything:gzip-file-as-resource'],
      },
    ],
    servers: () => [
      {
        name: 'everything',
        status: 'ready',
        since: startedAt,
        restarts: 0,
        toolCount: 5,
        era: 'legacy',
        rejected: [{ tool: 'simulate-research-query', reason: 'it needs tasks, which are not offered yet' }],
      },
      { name: 'files', status: 'ready', since: startedAt, restarts: 1, toolCount: 6, era: 'legacy', rejected: [] },
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
    ],
    audit: {
      query: ({ limit = 100, tool, user, event, beforeSeq, afterSeq }) => {
        if (isBroken) throw new Error('broken on purpose')
        const matches = records.filter(
          (one) =>
            (tool === undefined || one.tool === tool) &&
            (user === undefined || one.user_id === user) &&
            (event === undefined || one.event === event) &&
            (beforeSeq === undefined || one.seq < beforeSeq) &&
            (afterSeq === undefined || one.seq > afterSeq),
        )
        return matches.slice(0, limit)
      },
    },
    approvals: createApprovals({
      clock,
      approvals: {
        list: () => [...approvals.values()],
        get: (id: string) => approvals.get(id),
        decide(id: string, verdict: ApprovalVerdict) {
          const approval = approvals.get(id) as Approval
          if (approval.status !== 'pending')
            throw new ToolgateError('approval_decided', 'Somebody has decided this already.')
          verdicts.push({ id, decision: verdict.decision, by: verdict.by, reason: verdict.reason })
          const { by, atMs, reason } = verdict
          const status = verdict.decision === 'approve' ? 'approved' : 'rejected'
          const decided: Approval = {
            ...approval,
            status,
            decidedBy: by,
            decidedAt: atMs,
            ...(reason === undefined ? {} : { reason }),
          }
          approvals.set(id, decided)
          return decided
        },
      },
    }),
    clock,
    policyRevision: () => 4,
    catalogRevision: () => 9,
  }
  const controls = {
    verdicts,
    record,
    setWeb(available: boolean) {
      isWeb = available
      webSince = Date.now()
    },
    setBroken(broken: boolean) {
      isBroken = broken
    },
  }
  return { deps, controls }
}

function makeTools(): Tool[] {
  const define = (namespace: string, name: string, description: string, tags: string[] = [], title?: string): Tool =>
    defineTool({ namespace, name, description, tags, title })
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
    define('memory', 'read_graph', 'Read the entire knowledge graph', ['read']),
    define('memory', 'search_nodes', 'Search for nodes in the knowledge graph based on a query', ['read']),
  ]
}

const DESTRUCTIVE = new Set(['files:edit_file', 'files:move_file', 'files:write_file', 'memory:delete_entities'])

function makeView(caller: Caller, tools: readonly Tool[], isWeb: boolean, webSince: number): View {
  const decide = (tool: Tool | undefined): Decision => {
    const reasons: Reason[] = tool
      ? [...reasonsFor(caller, tool, isWeb, webSince)]
      : [why('catalog', 'tool_not_found', 'deny', 'no tool has this id')]
    return { outcome: reasons[0]?.outcome ?? 'allow', reasons }
  }
  const byId = new Map(tools.map((tool) => [tool.id, tool]))
  const ids = tools.filter((tool) => ['allow', 'ask'].includes(decide(tool).outcome)).map(({ id }) => id)
  const view: Partial<View> = {
    caller,
    ids,
    size: ids.length,
    has: (id: string) => ids.includes(id),
    explain: (id: string) => ({ ...decide(byId.get(id)), answers: [] }),
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
    tool_call_id: `c${seq}`,
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
    inputHash: 'i',
    run: undefined,
    requestedAt: now - 40_000,
    expiresAt: now + 560_000,
  }
  return [
    {
      ...base,
      id: 'a1',
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
      user: 'admin',
      tenant: undefined,
      run: 'run-7',
      tool: 'memory:delete_entities',
      status: 'pending',
      input: { entityNames: ['vera', 'Acme GmbH'] },
    },
    {
      ...base,
      id: 'a3',
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

function key(text: string, kind: 'mcp' | 'console', caller: Caller): CallerConfig {
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}

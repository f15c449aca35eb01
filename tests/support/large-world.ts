import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditEntry } from '@toolgate/core/audit'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './recording-server.ts'
import { MODERN, toMessage } from './rpc.ts'

/** How much a gateway has to show. */
export interface WorldSize {
  readonly servers: number
  readonly toolsOfServer: number
  readonly callers: number
  /** Of the last day, in the audit. */
  readonly calls: number
  readonly approvals: number
}

export const LARGE: WorldSize = { servers: 40, toolsOfServer: 250, callers: 1000, calls: 100_000, approvals: 500 }

export interface World {
  readonly configFile: string
  readonly auditFile: string
  close(): Promise<void>
}

/** Keys of people: without a tenant, and of one. */
export const PERSON_KEY = 'large-person-0123456789'
export const TENANT_PERSON_KEY = 'large-tenant-0123456789'
const TENANTS = ['acme', 'globex', undefined] as const
const ROLES = ['viewer', 'operator', 'admin'] as const
const DAY_MS = 24 * 3600_000

/**
 * Starts the servers of a large gateway, and writes its configuration and its audit of the last day into a folder. The audit
 * is written by the real writer: two records of a call, refusals, errors, and runs of ten calls.
 */
export async function makeWorld(folder: string, size: WorldSize = LARGE): Promise<World> {
  const servers = await Promise.all(
    Array.from({ length: size.servers }, (_, i) => startRecordingServer(toolsOf(i, size), { era: 'modern' })),
  )
  const configFile = join(folder, 'toolgate.yaml')
  const auditFile = join(folder, 'audit.db')
  writeFileSync(configFile, toConfig(servers, folder, size))
  await writeAudit(auditFile, size)
  return {
    configFile,
    auditFile,
    close: async () => void (await Promise.all(servers.map((server) => server.close()))),
  }
}

/** The key of one agent. */
export const AGENT_KEY: string = keyOf(1)
const serverName = (i: number): string => `server${String(i).padStart(2, '0')}`
const toolName = (i: number): string => `${i % 10 === 0 ? 'delete' : i % 10 === 1 ? 'send' : 'read'}_thing_${i}`

const tenantOf = (i: number): string | undefined => TENANTS[i % TENANTS.length]

function toolsOf(server: number, { toolsOfServer }: WorldSize): readonly RecordedTool[] {
  return Array.from({ length: toolsOfServer }, (_, i) => ({
    name: toolName(i),
    description: `Does the ${i}th of the things that ${serverName(server)} can do, to the file at the path it is given.`,
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Where the file is.' },
        head: { type: 'number', description: 'How many lines to read.' },
      },
      required: ['path'],
    },
  }))
}

function toConfig(servers: readonly RecordingServer[], folder: string, size: WorldSize): string {
  const caller = (i: number): string => {
    const tenant = tenantOf(i)
    const about = [
      `user: user-${i}`,
      `roles: [${ROLES[i % 7 === 0 ? 2 : i % 2]}]`,
      ...(tenant ? [`tenant: ${tenant}`] : []),
    ]
    return `  - { key: ${keyOf(i)}, ${about.join(', ')}, attributes: { team: team-${i % 20} } }`
  }
  return `
servers:
${servers.map(({ url }, i) => `  ${serverName(i)}: { url: "${url}", per: shared }`).join('\n')}
callers:
  - { key: ${PERSON_KEY}, for: console, user: owner, roles: [approver, operator] }
  - { key: ${TENANT_PERSON_KEY}, for: console, user: tina, tenant: acme, roles: [approver] }
${Array.from({ length: size.callers }, (_, i) => caller(i)).join('\n')}
groups:
${servers
  .slice(0, 20)
  .map((_, i) => `  group${i}: { title: "Group ${i}", tools: ["${serverName(i)}:read_*"] }`)
  .join('\n')}
policy:
  - name: baseline
    deny:
      - { match: "*:delete_*", unless: "'admin' in caller.roles" }
      - { match: "${serverName(1)}:*", when: "caller.attributes.team == 'team-3'" }
      - { match: "*:*", input: "has(input.path) && !within(input.path, '/workspace')" }
    ask:
      - { id: sends, match: "*:send_*" }
  - name: later
    mode: shadow
    deny: [{ match: "${serverName(2)}:*", when: "'viewer' in caller.roles" }]
limits: ["*:100000/60"]
approvals: { ttlMs: 86400000 }
audit: { store: sqlite, path: "${join(folder, 'audit.db')}" }
state: { store: sqlite, path: "${join(folder, 'state.db')}" }
`
}

async function writeAudit(path: string, size: WorldSize): Promise<void> {
  const audit = openSqliteAudit({ path, checkpoints: false })
  const startMs = Date.now() - DAY_MS + 60_000
  const stepMs = (DAY_MS - 120_000) / size.calls
  for (let i = 0; i < size.calls; i++) {
    for (const entry of entriesOf(i, startMs + Math.floor(i * stepMs), size)) await audit.write(entry)
    if (i % 2000 === 0) await audit.flush()
  }
  await audit.close()
}

/** The records of one call: of twenty, two are refused, one fails, and one is limited. */
function entriesOf(i: number, wallMs: number, size: WorldSize): readonly AuditEntry[] {
  const user = (i * 7919) % size.callers
  // Few tools have most of the calls.
  const tool = i % 3 === 0 ? (i * 104_729) % size.toolsOfServer : (i * 31) % 25
  const call = {
    tool: `${serverName(Math.floor(i / 10) % size.servers)}:${toolName(tool)}`,
    tool_call_id: `call-${i}`,
    user_id: `user-${user}`,
    tenant: tenantOf(user),
    run_id: `run-${Math.floor(i / 10)}`,
    policy_revision: 1,
    catalog_revision: size.servers,
    wallMs,
  }
  const input = { path: `/workspace/${i}.txt`, head: 10 }
  const kind = i % 20
  if (kind === 3 || kind === 13)
    return [{ ...call, event: 'tool_blocked', reason: 'policy_denied', clause: 'baseline#deny[0]', input }]
  if (kind === 7) return [{ ...call, event: 'tool_rate_limited', reason: 'rate_limited', limit: '*:100000/60', input }]
  const end = { ...call, wallMs: wallMs + 20, event: 'tool_result' as const, duration_ms: 1 + ((i * 37) % 400) }
  return [
    { ...call, event: 'tool_call', input },
    kind === 11 ? { ...end, is_error: true, error: 'The file is not there.' } : end,
  ]
}

/** Lets agents ask for calls that wait for a person: some equal, most different, from many callers. */
export async function askApprovals(url: string, { approvals, callers, servers }: WorldSize): Promise<void> {
  for (let from = 0; from < approvals; from += 20)
    await Promise.all(
      Array.from({ length: Math.min(20, approvals - from) }, async (_, n) => {
        const i = from + n
        const name = `${serverName(i % servers)}__${toolName(1 + 10 * (i % 5))}`
        const args = { path: `/workspace/${i % 5 === 0 ? 'shared' : i}.txt` }
        const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: args })
        const answer = await fetch(`${url}/mcp`, {
          method: 'POST',
          headers: { ...headers, authorization: `Bearer ${keyOf((i * 13) % callers)}` },
          body: JSON.stringify(body),
        })
        const text = await answer.text()
        if (!/[Aa]pproval/.test(text)) throw new Error(`a call does not wait: ${text.slice(0, 300)}`)
      }),
    )
}

/** Lets agents read files, so many a second, until it is stopped. */
export function keepCalling(url: string, perSecond: number, { callers, servers }: WorldSize): () => Promise<number> {
  let made = 0
  const underWay = new Set<Promise<void>>()
  const startedMs = performance.now()
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedMs) / 1000) * perSecond)
    for (; made < due && underWay.size < 64; made++) begin(made)
  }, 10)
  return async () => {
    clearInterval(timer)
    await Promise.all(underWay)
    return made / ((performance.now() - startedMs) / 1000)
  }

  function begin(i: number): void {
    const call = one(i).finally(() => underWay.delete(call))
    underWay.add(call)
  }

  async function one(i: number): Promise<void> {
    const name = `${serverName(i % servers)}__${toolName(2 + (i % 7))}`
    const { headers, body } = toMessage(MODERN, 'tools/call', { name, arguments: { path: `/workspace/${i}.txt` } })
    const authorization = `Bearer ${keyOf((i * 3) % callers)}`
    const answer = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { ...headers, authorization },
      body: JSON.stringify(body),
    })
    await answer.text()
  }
}

function keyOf(i: number): string {
  return `large-agent-${String(i).padStart(10, '0')}`
}

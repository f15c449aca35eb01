import { FAULTS } from '@toolgate/core'
import type { AuditExporter, AuditReader, AuditRecord } from '@toolgate/core/audit'
import { errnoOf, messageOf } from '@toolgate/values'
import { isObject, type JsonObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { ApprovalFilter, GrantFilter } from '@toolgate/core/stores'
import type { ItemKind } from '@toolgate/core/toolset'
import {
  type AcceptPinBody,
  type ApprovalsBody,
  type ApprovalComparisonBody,
  type ApprovalRow,
  type ApprovalVerdictBody,
  type AuditBody,
  type CallersBody,
  type CatalogBody,
  type EndedRunBody,
  type ErrorBody,
  type GrantRow,
  type GrantsBody,
  type HaltBody,
  type HaltRow,
  type HaltsBody,
  type KeyRow,
  type ForgottenPersonBody,
  type KeysBody,
  type PeopleBody,
  type LimitsBody,
  type NotificationsBody,
  type NotificationTestBody,
  type NotificationTestInput,
  type LogsBody,
  type NeedsBody,
  type NewKeyBody,
  type PinRow,
  type PinsBody,
  type PolicyBody,
  type PolicyRevisionBody,
  type PolicyRevisionsBody,
  type Reload,
  type ReloadRequestBody,
  type AcceptReplicasBody,
  type ReplicasBody,
  type RestoreRequestBody,
  type RunsBody,
  type SessionBody,
  type ToolBody,
  type ToolsBody,
  type WhyBody,
  type WhyInputBody,
  type WhyRequestBody,
} from '@toolgate/gateway'
import { CliError, EXITS, type ExitName } from './exit.ts'
import { parseObject } from './json.ts'
import { printable } from './io.ts'
import { TriedKeys } from './tried-keys.ts'
import type { GatewayAddress } from './target.ts'

/** The caller of a view: a configured caller by name, or any other as JSON. Optionally in an app. */
export type Whose = ({ readonly as: string } | { readonly caller: string }) & { readonly app?: string }

/** The HTTP API of a running gateway. It returns the wire bodies unchanged. */
export interface Api extends AuditReader, AuditExporter {
  /** Whether the latest export has the records of one tenant only. */
  isPart(): boolean
  /** Returns the items of one kind. Default: tools. */
  tools(whose: Whose, kind?: ItemKind): Promise<ToolsBody>
  /** Returns one tool in full. */
  tool(tool: string, whose: Whose): Promise<ToolBody>
  why(tool: string, whose: Whose): Promise<WhyBody>
  /** Returns the decision about a call, which does not run. */
  dryRun(asked: WhyRequestBody): Promise<WhyInputBody>
  callers(): Promise<CallersBody>
  /** Returns the clauses, and the number of calls that each matched. */
  policy(): Promise<PolicyBody>
  /** Returns the catalog as data, and the servers that are down. */
  catalog(): Promise<CatalogBody>
  needs(app?: string): Promise<NeedsBody>
  pins(): Promise<PinsBody>
  acceptPin(accepted: AcceptPinBody): Promise<PinRow>
  session(): Promise<SessionBody>
  logs(server: string, range: { readonly after?: number; readonly limit?: number }): Promise<LogsBody>
  halts(): Promise<HaltsBody>
  halt(asked: HaltBody): Promise<HaltRow>
  release(id: string): Promise<HaltRow>
  keys(): Promise<KeysBody>
  createKey(asked: object): Promise<NewKeyBody>
  revokeKey(id: string): Promise<KeyRow>
  people(filter: QueryParameters): Promise<PeopleBody>
  forgetPerson(user: string, tenant: string | undefined): Promise<ForgottenPersonBody>
  runs(
    filter: Readonly<Partial<Record<'user' | 'label' | 'state', string>>> & { readonly limit?: number },
  ): Promise<RunsBody>
  endRun(id: string): Promise<EndedRunBody>
  limits(range: { readonly limit?: number }): Promise<LimitsBody>
  notifications(): Promise<NotificationsBody>
  testNotifications(asked: NotificationTestInput): Promise<NotificationTestBody>
  replicas(): Promise<ReplicasBody>
  acceptReplicas(what: AcceptReplicasBody['what']): Promise<ReplicasBody>
  /** Makes the gateway read its file again. */
  reload(how: ReloadRequestBody): Promise<Reload>
  /** Returns the policies that were in force, the latest first. */
  policyRevisions(): Promise<PolicyRevisionsBody>
  policyRevision(revision: string): Promise<PolicyRevisionBody>
  /** Goes back to an earlier policy. */
  restorePolicy(revision: string, how: RestoreRequestBody): Promise<Reload>
  /** Applies the policy of the file again. */
  releasePolicy(): Promise<Reload>
  rotateAudit(): Promise<{ readonly closed: string | null }>
  approvals(filter: ApprovalFilter): Promise<ApprovalsBody>
  decide(id: string, verdict: ApprovalVerdictBody): Promise<ApprovalRow>
  grants(filter: GrantFilter): Promise<GrantsBody>
  revokeGrant(id: string, reason: string | undefined): Promise<GrantRow>
  compareApproval(id: string): Promise<ApprovalComparisonBody>
}

const TIMEOUT_MS = 10_000

/** A gateway, and the keys of which it knows some. */
interface KeyedAddress extends GatewayAddress {
  readonly triedKeys: TriedKeys
}

export function createApi(target: GatewayAddress): Api {
  const line: KeyedAddress = { ...target, triedKeys: new TriedKeys(target) }
  const get = <T>(path: string, query: QueryParameters = {}): Promise<T> => request<T>(line, path, query)
  const change = <T>(method: ApiChange['method'], path: string, body?: object): Promise<T> =>
    request<T>(line, path, {}, { method, body })
  let isPart = false
  return {
    isPart: () => isPart,
    tools: (whose, kind) => get<ToolsBody>('/api/tools', { ...whose, kind }),
    tool: (tool, whose) => get<ToolBody>('/api/tool', { tool, ...whose }),
    why: (tool, whose) => get<WhyBody>('/api/why', { tool, ...whose }),
    dryRun: (asked) => change<WhyInputBody>('POST', '/api/why', asked),
    callers: () => get<CallersBody>('/api/callers'),
    policy: () => get<PolicyBody>('/api/policy'),
    catalog: () => get<CatalogBody>('/api/catalog'),
    needs: (app) => get<NeedsBody>('/api/needs', { app }),
    pins: () => get<PinsBody>('/api/pins'),
    acceptPin: (accepted) => change<PinRow>('POST', '/api/pins/accept', accepted),
    session: () => get<SessionBody>('/api/session'),
    logs: (server, range) => get<LogsBody>('/api/logs', { server, ...range }),
    halts: () => get<HaltsBody>('/api/halts'),
    halt: (asked) => change<HaltRow>('POST', '/api/halts', asked),
    release: (id) => change<HaltRow>('DELETE', `/api/halts/${encodeURIComponent(id)}`),
    keys: () => get<KeysBody>('/api/keys'),
    createKey: (asked) => change<NewKeyBody>('POST', '/api/keys', asked),
    revokeKey: (id) => change<KeyRow>('DELETE', `/api/keys/${encodeURIComponent(id)}`),
    people: (filter) => get<PeopleBody>('/api/people', filter),
    forgetPerson: (user, tenant) =>
      request(line, '/api/people', { user, tenant }, { method: 'DELETE', body: undefined }),
    runs: (filter) => get<RunsBody>('/api/runs', filter),
    endRun: (id) => change<EndedRunBody>('DELETE', `/api/runs/${encodeURIComponent(id)}`),
    limits: (range) => get<LimitsBody>('/api/limits', range),
    policyRevisions: () => get<PolicyRevisionsBody>('/api/policy/revisions'),
    policyRevision: (id) => get<PolicyRevisionBody>(`/api/policy/revisions/${encodeURIComponent(id)}`),
    restorePolicy: (id, how) => change<Reload>('POST', `/api/policy/revisions/${encodeURIComponent(id)}`, how),
    releasePolicy: () => change<Reload>('DELETE', '/api/policy/restored'),
    notifications: () => get<NotificationsBody>('/api/notifications'),
    testNotifications: (asked) => change<NotificationTestBody>('POST', '/api/notifications/test', asked),
    rotateAudit: () => change('POST', '/api/audit/rotate', {}),
    replicas: () => get<ReplicasBody>('/api/replicas'),
    acceptReplicas: (what) => change<ReplicasBody>('POST', '/api/replicas/accept', { what }),
    reload: (how) => change<Reload>('POST', '/api/reload', how),
    approvals: (filter) => get<ApprovalsBody>('/api/approvals', { ...filter }),
    decide: (id, verdict) => change<ApprovalRow>('POST', `/api/approvals/${encodeURIComponent(id)}`, verdict),
    grants: (filter) => get<GrantsBody>('/api/grants', { ...filter }),
    revokeGrant: (id, reason) =>
      change<GrantRow>(
        'DELETE',
        `/api/grants/${encodeURIComponent(id)}${reason === undefined ? '' : `?reason=${encodeURIComponent(reason)}`}`,
      ),
    compareApproval: (id) => change<ApprovalComparisonBody>('POST', `/api/approvals/${encodeURIComponent(id)}/compare`),
    async query({ beforeSeq, afterSeq, ...filter }) {
      const body = await get<AuditBody>('/api/audit', { ...filter, before: beforeSeq, after: afterSeq })
      return body.records
    },
    async *exportRecords({ beforeSeq, afterSeq, ...filter } = {}) {
      const query = { ...filter, before: beforeSeq, after: afterSeq }
      const response = await openStream(line, urlOf(target, '/api/audit/export', query))
      if (!response.headers.get('content-type')?.startsWith('application/x-ndjson') || !response.body)
        throw faultOf(target, response.status, parseObject(await response.text()))
      isPart = response.headers.has('toolgate-part')
      for await (const text of linesOf(response.body)) yield readOwnJson(text) as AuditRecord
    },
  }
}

interface ApiChange {
  readonly method: 'POST' | 'DELETE'
  readonly body: object | undefined
}

type QueryParameters = Readonly<Record<string, string | number | undefined>>

/** Returns the body of an answer. Command and gateway have one version, so the wire types are not checked again. */
async function request<T>(target: KeyedAddress, path: string, query: QueryParameters, change?: ApiChange): Promise<T> {
  const { status, body } = await answerOf(target, urlOf(target, path, query), change)
  if (status === 200 && body) return body as T
  throw faultOf(target, status, body)
}

function urlOf(target: GatewayAddress, path: string, query: QueryParameters): URL {
  const url = new URL(path, target.url)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, String(value))
  return url
}

/** Returns the error for an answer without the expected body. */
function faultOf(target: GatewayAddress, status: number, body: JsonObject | undefined): CliError {
  const error = body?.['error']
  if (!isErrorBody(error))
    return unreachable(target, `Something that is not a Toolgate gateway answers at ${target.url} (HTTP ${status}).`)
  const exit = exitOf(status, error.code)
  // Each problem of the sent file has its own line.
  const lines = error.code === 'body_invalid' ? error.message.split('\n') : [error.message]
  return new CliError(exit, lines.map(printable).join('\n'), {
    code: error.code,
    ...(exit === 'key' ? { hint: target.keyHint } : {}),
  })
}

function isErrorBody(error: unknown): error is ErrorBody['error'] {
  return isObject(error) && typeof error['code'] === 'string' && typeof error['message'] === 'string'
}

/** Opens a stream. The timeout covers only the response headers, because a long export takes time. */
async function openStream(target: KeyedAddress, url: URL): Promise<Response> {
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(new DOMException('', 'TimeoutError')), timeoutOf(target))
  try {
    return await target.triedKeys.send((key) =>
      fetch(url, { headers: keyHeader(key), redirect: 'error', signal: late.signal }),
    )
  } catch (cause) {
    throw unreachable(target, `No gateway answers at ${target.url} (${reasonOf(cause, target)}).`, cause)
  } finally {
    clearTimeout(timer)
  }
}

/** Yields lines. Only a line feed ends a line, because a record may contain other line separators, such as U+2028. */
async function* linesOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
  if (rest !== '') yield rest
}

function keyHeader(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}

async function answerOf(
  target: KeyedAddress,
  url: URL,
  change?: ApiChange,
): Promise<{ status: number; body: JsonObject | undefined }> {
  try {
    const { method, body: sent } = change ?? { method: 'GET', body: undefined }
    const type = sent === undefined ? {} : { 'content-type': 'application/json' }
    const body = sent === undefined ? {} : { body: toJsonText(sent) }
    const signal = AbortSignal.timeout(timeoutOf(target))
    const response = await target.triedKeys.send((key) =>
      fetch(url, { method, headers: { ...keyHeader(key), ...type }, ...body, redirect: 'error', signal }),
    )
    return { status: response.status, body: parseObject(await response.text()) }
  } catch (cause) {
    throw unreachable(target, `No gateway answers at ${target.url} (${reasonOf(cause, target)}).`, cause)
  }
}

function timeoutOf({ timeoutMs = TIMEOUT_MS }: GatewayAddress): number {
  return timeoutMs
}

/** Returns the reason of an error. The error of `fetch` only says that it failed; its cause has the reason. */
function reasonOf(error: unknown, target: GatewayAddress): string {
  if (!(error instanceof Error)) return messageOf(error)
  if (error.name === 'TimeoutError') return `no answer within ${timeoutOf(target) / 1000} s`
  return errnoOf(error.cause) ?? messageOf(error.cause ?? error)
}

function unreachable(target: GatewayAddress, message: string, cause?: unknown): CliError {
  return new CliError('unreachable', message, { hint: target.startHint, cause })
}

const KEY_CODES: ReadonlySet<string> = new Set(['unauthenticated', 'key_not_for_console'])

function exitOf(status: number, code: string): ExitName {
  if (KEY_CODES.has(code)) return 'key'
  const isMisuse = isFaultCode(code) ? FAULTS[code].exit === EXITS.usage.code : status < 500
  return isMisuse ? 'usage' : 'no'
}

function isFaultCode(code: string): code is keyof typeof FAULTS {
  return Object.hasOwn(FAULTS, code)
}

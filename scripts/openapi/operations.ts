import type { ApiFaultCode } from '../../packages/gateway/src/model/faults.ts'
import type { FAULTS } from '@toolgate/core'
import { CALL_FIELDS } from '../../packages/gateway/src/admin/calls/call-filter.ts'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'

/** What the HTTP API serves: the rows of `packages/gateway/openapi.json`. A test compares them with the routes. */

/** Whose credential opens a route. `everyone`: none is needed. */
export type Who = 'agent' | 'host' | 'host or person' | 'person' | 'everyone'

export interface Operation {
  readonly who: Who
  readonly summary: string
  readonly query?: Readonly<Record<string, QueryParameter>>
  /** A type of `wire.ts`, as `answer` and `lines` are. */
  readonly body?: string
  /** The fields of a form, instead of a body. */
  readonly form?: readonly string[]
  readonly answer?: string
  /** The type of each JSON line, instead of an answer. */
  readonly lines?: string
  /** The media type of the same as another text, beside lines. */
  readonly orText?: string
  /** Headers of the answer of lines that a client reads, with what they say. */
  readonly headers?: Readonly<Record<string, string>>
  /** Where the browser is sent, instead of an answer. */
  readonly redirect?: string
  /** Beside those of every route of its `who`. */
  readonly faults?: readonly FaultCode[]
}

export type FaultCode = ApiFaultCode | keyof typeof FAULTS

interface QueryParameter {
  readonly schema?: object
  /** The schema of a value that is written as JSON. */
  readonly content?: { readonly 'application/json': { readonly schema: object } }
  readonly description?: string
  readonly required?: true
}

const text = { schema: { type: 'string', minLength: 1, maxLength: 256 } }
const target = { schema: { type: 'string', minLength: 1, maxLength: 1024 } }
const word = (type: string) => ({ schema: { $ref: `#/components/schemas/${type}` } })
const whole = (minimum: number, maximum?: number) => ({ schema: { type: 'integer', minimum, maximum } })
const needed = (parameter: QueryParameter) => ({ ...parameter, required: true }) as const

const itemId = {
  schema: { type: 'string', minLength: 1, maxLength: 2304 },
  description: 'The id of a tool, or of another item.',
}
const time = {
  schema: {
    anyOf: [
      { type: 'string', format: 'date-time' },
      { type: 'string', format: 'date' },
      { type: 'string', pattern: '^[0-9]{1,15}$' },
    ],
  },
  description: 'RFC 3339, such as 2026-11-21T09:00:00Z, or milliseconds since 1970.',
}
const app = { ...text, description: 'The name of an app.' }
const as = { ...text, description: 'A configured user.' }
const caller = {
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Caller' } } },
  description: 'Instead of `as`: a caller. At most 4,096 characters of JSON.',
}
const whose = { as, caller, app }

const auditFilters = {
  tool: text,
  user: text,
  session: text,
  event: word('AuditEvent'),
  outcome: { schema: { type: 'string', enum: [...AUDIT_OUTCOMES] } },
  call: { ...text, description: 'The `tool_call_id`.' },
  run: { ...text, description: 'The `run_id`.' },
  since: time,
  until: time,
}
const auditRange = {
  ...auditFilters,
  before: { ...whole(0), description: 'The `seq` of a record.' },
  after: { ...whole(0), description: 'The `seq` of a record.' },
}

const callFilters = {
  ...Object.fromEntries(
    Object.entries(CALL_FIELDS).map(([name, field]) => [
      name,
      { ...text, description: `The \`${field}\` of its records.` },
    ]),
  ),
  tool: { ...text, description: 'The `tool` of its records, or a pattern such as `files:*`.' },
  outcome: word('CallOutcome'),
  since: time,
  until: time,
  text: { ...text, description: 'A text anywhere in its latest record, in any case.' },
  slower: { ...whole(0), description: 'Took at least so many milliseconds.' },
}

const approvalFaults = [
  'approval_unknown',
  'approval_decided',
  'approval_not_revocable',
  'approval_forbidden',
  'approval_needs_other',
  'approval_needs_login',
  'approval_edit_refused',
] as const

export const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET /api/list': {
    who: 'agent',
    summary: 'Lists the items of one kind that the agent sees.',
    query: { app, kind: { ...word('ItemKind'), description: 'Default: `tool`.' } },
    answer: 'AgentItemsBody',
    faults: ['app_unknown'],
  },
  'POST /api/decide': {
    who: 'agent',
    summary: 'Returns what a call would get now. Nothing runs.',
    query: { app },
    body: 'AgentCallRequestBody',
    answer: 'AgentDecisionBody',
    faults: ['app_unknown'],
  },
  'POST /api/call': {
    who: 'agent',
    summary: 'Makes a call. Its outcome is in the body.',
    query: { app },
    body: 'AgentCallRequestBody',
    answer: 'AgentCallBody',
    faults: ['app_unknown', 'scope_insufficient', 'stopping'],
  },
  'POST /api/runs': {
    who: 'host',
    summary: 'Starts a run. The answer has its token, which is all that the agent holds.',
    body: 'NewRunRequestBody',
    answer: 'StartedRunBody',
    faults: ['state_unavailable'],
  },
  'GET /api/runs': {
    who: 'host or person',
    summary:
      'Returns runs, those with the latest records first: of a host its own that go on, of a person those of their tenant, of the last week.',
    query: {
      user: text,
      tenant: text,
      label: text,
      text: { ...text, description: 'A part of its id, user, tenant, client, app or host, in any case.' },
      state: { schema: { type: 'string', enum: ['open', 'ended'] } },
      since: { ...time, description: 'With a call since then.' },
      until: { ...time, description: 'That began before.' },
      before: { ...whole(0), description: 'The `next` of the page before.' },
      limit: whole(1, 1000),
    },
    answer: 'RunsBody',
    faults: ['state_unavailable'],
  },
  'DELETE /api/runs/{id}': {
    who: 'host or person',
    summary: 'Ends a run and those below it.',
    answer: 'EndedRunBody',
    faults: ['run_forbidden', 'run_unknown', 'state_unavailable'],
  },
  'GET /api/limits': {
    who: 'person',
    summary: 'Returns what is left of the budgets of limits with a cost, the least left first.',
    query: { limit: whole(1, 1000) },
    answer: 'LimitsBody',
  },
  'GET /api/notifications': {
    who: 'person',
    summary: 'Returns the receivers of notifications about approvals, and how they are doing.',
    answer: 'NotificationsBody',
  },
  'POST /api/notifications/test': {
    who: 'person',
    summary: 'Sends an example to receivers, and returns what they answered.',
    body: 'NotificationTestInput',
    answer: 'NotificationTestBody',
    faults: ['notification_forbidden', 'receiver_unknown'],
  },
  'GET /api/openapi.json': { who: 'everyone', summary: 'Returns this document.', answer: 'OpenapiBody' },
  'GET /api/login': {
    who: 'everyone',
    summary: 'Returns how people can log in beside console keys.',
    answer: 'LoginsBody',
  },
  'POST /api/login': {
    who: 'everyone',
    summary: 'Logs a person in by their console key. Sets a cookie.',
    body: 'LoginBody',
    answer: 'SessionBody',
    faults: ['unauthenticated', 'key_not_for_console'],
  },
  'GET /api/oidc/login': {
    who: 'everyone',
    summary: 'Begins a login with OpenID Connect. Served only if it is configured.',
    query: {
      back: { schema: { type: 'string' }, description: 'The page to return to.' },
      fresh: { schema: { type: 'string' }, description: 'If present, people show again who they are.' },
    },
    redirect: 'To the authorization server.',
  },
  'GET /api/oidc/callback': {
    who: 'everyone',
    summary: 'Ends a login with OpenID Connect. Sets a cookie. Served only if it is configured.',
    query: { code: { schema: { type: 'string' } }, state: { schema: { type: 'string' } } },
    redirect: 'To the page where the login began.',
  },
  'POST /api/oidc/backchannel-logout': {
    who: 'everyone',
    summary: 'Ends the logins and tokens that the authorization server has ended. Served only if it is configured.',
    form: ['logout_token'],
    faults: ['body_invalid', 'media_type_unsupported', 'body_too_large', 'issuer_unavailable', 'route_unknown'],
  },
  'POST /api/logout': { who: 'everyone', summary: 'Ends the session of the cookie.', answer: 'LogoutBody' },
  'GET /api/session': { who: 'person', summary: 'Returns who is logged in.', answer: 'SessionBody' },
  'GET /api/tools': {
    who: 'person',
    summary: 'Lists all items of one kind, with the decision for one caller.',
    query: { ...whose, kind: { ...word('ItemKind'), description: 'Default: `tool`.' } },
    answer: 'ToolsBody',
    faults: ['caller_unknown', 'app_unknown'],
  },
  'GET /api/tools/columns': {
    who: 'person',
    summary: 'Lists the same in columns, which is shorter where there are many.',
    query: { ...whose, kind: { ...word('ItemKind'), description: 'Default: `tool`.' } },
    answer: 'ToolColumnsBody',
    faults: ['caller_unknown', 'app_unknown'],
  },
  'GET /api/tool': {
    who: 'person',
    summary: 'Returns one tool, or another listed item, in full.',
    query: { tool: needed(itemId), ...whose },
    answer: 'ToolBody',
    faults: ['caller_unknown', 'app_unknown', 'tool_unknown'],
  },
  'GET /api/why': {
    who: 'person',
    summary: 'Explains the decision about one item for one caller.',
    query: { tool: needed(itemId), ...whose },
    answer: 'WhyBody',
    faults: ['caller_unknown', 'app_unknown', 'tool_unknown'],
  },
  'GET /api/callers': {
    who: 'person',
    summary: 'Lists the callers that `as` may name.',
    query: {
      as: { ...text, description: 'Only this caller.' },
      text: { ...text, description: 'A part of the name, tenant or a role, in any case.' },
      own: { schema: { enum: ['true', 'false'] }, description: 'Only callers that this person may call tools as.' },
      limit: whole(1, 2000),
    },
    answer: 'CallersBody',
  },
  'GET /api/people': {
    who: 'person',
    summary: 'Lists who can use the gateway, and who has in the last week: their callers, keys, connections and calls.',
    query: {
      text: { ...text, description: 'A part of the name, tenant, client or a role, in any case.' },
      tenant: text,
      role: text,
      order: {
        schema: { enum: ['lastCall', 'lastSeen', 'calls', 'tokens', 'expiry'] },
        description: 'What people are sorted by, instead of their names.',
      },
      from: { ...whole(0), description: 'How many people are left out.' },
      limit: whole(1, 2000),
    },
    answer: 'PeopleBody',
  },
  'DELETE /api/people': {
    who: 'person',
    summary: 'Removes the record of a person, until they come again.',
    query: { user: needed(text), tenant: text },
    answer: 'ForgottenPersonBody',
    faults: ['person_forbidden', 'person_unknown', 'person_in_file', 'state_unavailable'],
  },
  'GET /api/matrix': {
    who: 'person',
    summary: 'Counts what people see of each group.',
    query: {
      text: { ...text, description: 'A part of the name, tenant or a role, in any case.' },
      tenant: text,
      role: text,
      from: { ...whole(0), description: 'How many callers are left out, in the order of `/api/callers`.' },
      limit: whole(1, 24),
      open: { ...text, description: 'The key of a row whose tools are listed.' },
    },
    answer: 'MatrixBody',
  },
  'GET /api/groups': { who: 'person', summary: 'Lists the groups, each with its state.', answer: 'GroupsBody' },
  'GET /api/apps': { who: 'person', summary: 'Lists the apps.', answer: 'AppsBody' },
  'GET /api/needs': {
    who: 'person',
    summary: "Lists the dependencies of an app's tools, or of all groups.",
    query: { app },
    answer: 'NeedsBody',
    faults: ['app_unknown'],
  },
  'GET /api/policy': {
    who: 'person',
    summary: 'Lists the clauses of the policies, each with its place in the file and how often it held.',
    answer: 'PolicyBody',
  },
  'GET /api/warnings': {
    who: 'person',
    summary: 'Lists likely mistakes in the configuration.',
    answer: 'WarningsBody',
  },
  'GET /api/preferences': {
    who: 'person',
    summary: 'Returns what a user has switched off.',
    query: { as },
    answer: 'PreferencesBody',
    faults: ['caller_unknown'],
  },
  'PUT /api/preferences': {
    who: 'person',
    summary: 'Replaces what a user has switched off.',
    query: { as },
    body: 'PreferencesBody',
    answer: 'PreferencesBody',
    faults: ['caller_unknown', 'preferences_forbidden', 'state_unavailable'],
  },
  'GET /api/audit': {
    who: 'person',
    summary: 'Searches the audit, newest first.',
    query: { limit: whole(1, 1000), ...auditRange },
    answer: 'AuditBody',
    faults: ['audit_unavailable'],
  },
  'GET /api/calls': {
    who: 'person',
    summary: 'Returns one row for each call, newest first, with its records.',
    query: {
      ...callFilters,
      limit: { ...whole(1, 500), description: 'Default: 100.' },
      before: { ...whole(0), description: 'The `next` of the page before.' },
    },
    answer: 'CallsBody',
    faults: ['audit_unavailable'],
  },
  'GET /api/calls/export': {
    who: 'person',
    summary: 'Returns all calls that match, in the order of their ends, as JSON lines or CSV.',
    query: {
      ...callFilters,
      format: { schema: { type: 'string', enum: ['jsonl', 'csv'] }, description: 'Default: `jsonl`.' },
    },
    lines: 'CallRow',
    orText: 'text/csv',
    faults: ['audit_unavailable'],
  },
  'GET /api/overview': {
    who: 'person',
    summary:
      'Counts what happened in the last hour, day or week: by tool and server, with percentiles, refusals and the cost of lists.',
    query: { period: { ...word('OverviewPeriod'), description: 'Default: `24h`.' } },
    answer: 'OverviewBody',
    faults: ['audit_unavailable'],
  },
  'GET /api/audit/counts': {
    who: 'person',
    summary: 'Counts how attempts ended, in at most 500 buckets of time.',
    query: {
      ...auditFilters,
      since: needed(time),
      until: needed(time),
      bucket: needed({ ...whole(1), description: 'Milliseconds.' }),
    },
    answer: 'AuditCountsBody',
    faults: ['audit_unavailable'],
  },
  'GET /api/audit/evidence': {
    who: 'person',
    summary: 'Returns the current checkpoints of the audit.',
    answer: 'AuditEvidenceBody',
  },
  'POST /api/audit/rotate': {
    who: 'person',
    summary: 'Closes the file of JSON lines and begins another.',
    body: 'AuditRotationRequestBody',
    answer: 'AuditRotationBody',
    faults: ['audit_forbidden', 'audit_unavailable'],
  },
  'GET /api/audit/export': {
    who: 'person',
    summary: 'Returns all matching records, oldest first, as JSON lines.',
    query: auditRange,
    lines: 'AuditRecord',
    headers: {
      'toolgate-part':
        '`tenant`: the records are those of one tenant, and their numbers have gaps where those of others are.',
    },
    faults: ['audit_unavailable'],
  },
  'GET /api/approvals': {
    who: 'person',
    summary: 'Lists approvals, newest first.',
    query: {
      limit: whole(1, 1000),
      status: word('ApprovalStatus'),
      user: text,
      tool: text,
      chat: text,
      before: { ...text, description: 'The id of the last approval of the page before.' },
    },
    answer: 'ApprovalsBody',
    faults: ['state_unavailable'],
  },
  'GET /api/approvals/waiting': {
    who: 'person',
    summary: 'Lists the calls that wait, without their inputs: at most 1,000, newest first.',
    answer: 'WaitingApprovalsBody',
    faults: ['state_unavailable'],
  },
  'POST /api/approvals/{id}': {
    who: 'person',
    summary: 'Approves, rejects or revokes an approval.',
    body: 'ApprovalVerdictBody',
    answer: 'ApprovalRow',
    faults: [...approvalFaults, 'grant_forbidden', 'grant_invalid', 'grant_too_many', 'state_unavailable'],
  },
  'POST /api/approvals/{id}/compare': {
    who: 'person',
    summary:
      'Compares what a waiting call would write with what is there, which it reads with the rights of the caller.',
    answer: 'ApprovalComparisonBody',
    faults: ['approval_unknown', 'approval_decided', 'approval_forbidden', 'state_unavailable'],
  },
  'GET /api/grants': {
    who: 'person',
    summary: 'Lists grants, newest first.',
    query: {
      limit: whole(1, 1000),
      status: word('GrantStatus'),
      user: text,
      tool: text,
      tenant: text,
      before: { ...text, description: 'The id of the last grant of the page before.' },
    },
    answer: 'GrantsBody',
    faults: ['state_unavailable'],
  },
  'DELETE /api/grants/{id}': {
    who: 'person',
    summary: 'Revokes a grant: no call uses it from then on.',
    query: { reason: { schema: { type: 'string', maxLength: 500 } } },
    answer: 'GrantRow',
    faults: ['grant_unknown', 'grant_ended', 'grant_forbidden', 'approval_not_revocable', 'state_unavailable'],
  },
  'GET /api/halts': { who: 'person', summary: 'Lists the halts, newest first.', answer: 'HaltsBody' },
  'GET /api/halts/reach': {
    who: 'person',
    summary: 'Says what a halt would stop now, before it is set.',
    query: { user: target, session: target, tool: target, tenant: target, all: { schema: { const: 'true' } } },
    answer: 'HaltReachBody',
    faults: ['halt_forbidden'],
  },
  'POST /api/halts': {
    who: 'person',
    summary: 'Halts what the body names. It is in force on all replicas before the answer.',
    body: 'HaltBody',
    answer: 'HaltRow',
    faults: ['halt_forbidden', 'state_unavailable'],
  },
  'DELETE /api/halts/{id}': {
    who: 'person',
    summary: 'Releases a halt.',
    answer: 'HaltRow',
    faults: ['halt_forbidden', 'halt_unknown', 'state_unavailable'],
  },
  'GET /api/keys': {
    who: 'person',
    summary: 'Lists the keys: all, or those of one user.',
    query: { user: text, tenant: text },
    answer: 'KeysBody',
    faults: ['key_forbidden'],
  },
  'POST /api/keys': {
    who: 'person',
    summary: 'Makes a key. Only this answer has it.',
    body: 'NewKeyRequestBody',
    answer: 'NewKeyBody',
    faults: ['key_forbidden', 'state_unavailable'],
  },
  'DELETE /api/keys/{id}': {
    who: 'person',
    summary: 'Revokes a key. Its sessions end before the answer.',
    answer: 'KeyRow',
    faults: ['key_forbidden', 'key_unknown', 'key_in_file', 'state_unavailable'],
  },
  'GET /api/connections': {
    who: 'person',
    summary:
      'Lists the servers that users connect to their own accounts, with the connections of the person, or of a user.',
    query: { user: text, tenant: text },
    answer: 'ConnectionsBody',
    faults: ['connection_forbidden'],
  },
  'DELETE /api/connections/{id}': {
    who: 'person',
    summary: "Ends the person's own connection to a server, or for an approver that of a user.",
    query: { user: text, tenant: text },
    answer: 'ConnectionRow',
    faults: ['connection_forbidden', 'server_unknown', 'state_unavailable'],
  },
  'GET /api/policy/revisions': {
    who: 'person',
    summary: 'The policies that were in force, the latest first, for people without a tenant.',
    answer: 'PolicyRevisionsBody',
    faults: ['query_invalid', 'state_unavailable'],
  },
  'GET /api/policy/revisions/{id}': {
    who: 'person',
    summary: 'The text of a policy that was in force, with secrets masked.',
    answer: 'PolicyRevisionBody',
    faults: ['query_invalid', 'reload_forbidden', 'revision_unknown', 'state_unavailable'],
  },
  'POST /api/policy/revisions/{id}': {
    who: 'person',
    summary:
      'Goes back to this policy, and keeps the rest of the file. It applies until the policy of the file changes.',
    body: 'RestoreRequestBody',
    answer: 'ReloadBody',
    faults: ['config_invalid', 'reload_forbidden', 'reload_refused', 'reload_outdated', 'revision_unknown'],
  },
  'DELETE /api/policy/restored': {
    who: 'person',
    summary: 'Applies the policy of the file again, in place of a restored one.',
    answer: 'ReloadBody',
    faults: ['config_invalid', 'reload_forbidden', 'reload_refused', 'revision_unknown', 'state_unavailable'],
  },
  'POST /api/reload': {
    who: 'person',
    summary: "Reads the gateway's file again.",
    body: 'ReloadRequestBody',
    answer: 'ReloadBody',
    faults: ['config_invalid', 'reload_forbidden', 'reload_refused', 'reload_outdated'],
  },
  'POST /api/why': {
    who: 'person',
    summary: 'Says what a call with an input would get now, and why. Runs nothing and records nothing.',
    body: 'WhyRequestBody',
    answer: 'WhyInputBody',
    faults: ['query_invalid', 'caller_unknown', 'tool_unknown', 'app_unknown', 'dry_run_busy'],
  },
  'POST /api/tool/call': {
    who: 'person',
    summary: "Makes a call as an agent of the person's own user, with the rights of that agent.",
    body: 'TrialRequestBody',
    answer: 'AgentCallBody',
    faults: ['query_invalid', 'call_forbidden', 'caller_unknown', 'tool_unknown', 'app_unknown', 'stopping'],
  },
  'POST /api/what-if': {
    who: 'person',
    summary: 'Says what the rules of another configuration would mean for callers and recorded calls. Changes nothing.',
    body: 'WhatIfRequestBody',
    answer: 'WhatIfBody',
    faults: [
      'config_invalid',
      'what_if_forbidden',
      'what_if_busy',
      'what_if_too_large',
      'reload_refused',
      'audit_unavailable',
    ],
  },
  'POST /api/compare': {
    who: 'person',
    summary: 'Says whether another configuration grants no more than the one in force. Changes nothing.',
    body: 'CompareRequestBody',
    answer: 'CompareBody',
    faults: ['config_invalid', 'what_if_forbidden', 'what_if_busy', 'what_if_too_large', 'reload_refused'],
  },
  'POST /api/test': {
    who: 'person',
    summary: 'Tests the policy in force, or another one, with the text of a file of tests. Runs no tool.',
    body: 'PolicyTestsRequestBody',
    answer: 'PolicyTestsBody',
    faults: ['config_invalid', 'what_if_forbidden', 'what_if_busy', 'what_if_too_large', 'reload_refused'],
  },
  'GET /api/catalog': {
    who: 'person',
    summary: 'Returns the items of the catalog as data for tests of policies, and the servers that are down.',
    answer: 'CatalogBody',
    faults: ['what_if_forbidden'],
  },
  'POST /api/suggest': {
    who: 'person',
    summary: 'Returns the least that recorded calls show to be needed, as a policy. Changes nothing.',
    body: 'SuggestRequestBody',
    answer: 'SuggestBody',
    faults: [
      'config_invalid',
      'what_if_forbidden',
      'what_if_busy',
      'what_if_too_large',
      'reload_refused',
      'audit_unavailable',
    ],
  },
  'GET /api/replicas': {
    who: 'person',
    summary: 'Lists the gateways that share their stores.',
    answer: 'ReplicasBody',
    faults: ['replica_forbidden', 'state_unavailable'],
  },
  'POST /api/replicas/accept': {
    who: 'person',
    summary: 'Goes on with a database that lost changes, or with limits whose counts are lost.',
    body: 'AcceptReplicasBody',
    answer: 'ReplicasBody',
    faults: ['replica_forbidden', 'replica_none', 'state_unavailable'],
  },
  'GET /api/servers': {
    who: 'person',
    summary: 'Lists the servers with their states and instances.',
    answer: 'ServersBody',
  },
  'POST /api/servers/{id}/restart': {
    who: 'person',
    summary: 'Restarts a server at every live replica. The calls that it runs end.',
    answer: 'RestartedBody',
    faults: ['restart_forbidden', 'server_unknown', 'audit_unavailable'],
  },
  'GET /api/logs': {
    who: 'person',
    summary: 'Returns the latest lines of a server, oldest first.',
    query: {
      server: needed(text),
      after: { ...whole(0), description: 'The `seq` of a line.' },
      limit: whole(1, 500),
    },
    answer: 'LogsBody',
    faults: ['logs_forbidden', 'server_unknown'],
  },
  'GET /api/pins': {
    who: 'person',
    summary: "Lists the state of each tool's definition.",
    query: {
      status: word('PinStatus'),
      noted: {
        schema: { type: 'string', enum: ['true', 'false'] },
        description: '`true`: only those with something to look at. Default: all.',
      },
    },
    answer: 'PinsBody',
  },
  'POST /api/pins/accept': {
    who: 'person',
    summary: 'Accepts the definition with this hash.',
    body: 'AcceptPinBody',
    answer: 'PinRow',
    faults: ['approval_forbidden', 'pin_unknown', 'tool_unknown', 'state_unavailable'],
  },
}

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as audit from './entry/audit.ts'
import * as change from '../../change/src/index.ts'
import * as changeInternal from '../../change/src/internal.ts'
import * as calling from './entry/call.ts'
import * as deciding from './entry/decide.ts'
import * as exposing from '../../expose/src/index.ts'
import * as groups from './entry/groups.ts'
import * as internal from './entry/internal.ts'
import * as policies from './entry/policy.ts'
import * as pins from './entry/pins.ts'
import * as values from '@toolgate/values'
import * as cel from '@toolgate/values/cel'
import * as json from '@toolgate/values/json'
import * as jsonSchema from '@toolgate/values/json-schema'
import * as redact from '@toolgate/values/redact'
import * as search from './entry/search.ts'
import * as stepping from './entry/steps.ts'
import * as stores from './entry/stores.ts'
import * as tooling from './entry/tools.ts'
import * as toolset from './entry/toolset.ts'
import type { TargetDefinition } from '../../expose/src/define-target.ts'
import type { Gate, GateOptions, ToolDefinition } from './index.ts'
import * as root from './index.ts'
import type { StepChange, StepsOptions } from './gate/steps.ts'
import * as telemetry from './telemetry/open-telemetry.ts'
import { manualClock } from '../../testing/src/manual-clock.ts'

/** Every entry but those with a table of their own. */
const core = {
  ...root,
  ...stores,
  ...change,
  ...changeInternal,
  ...calling,
  ...deciding,
  ...policies,
  ...exposing,
  ...pins,
  ...tooling,
  ...toolset,
  ...values,
  ...cel,
  ...json,
  ...jsonSchema,
  ...redact,
  ...stepping,
  ...search,
  ...groups,
  ...internal,
}
const {
  buildToolset,
  createApprovals,
  createAvailability,
  createGate,
  createOriginIndex,
  createPins,
  createRedactor,
  createSteps,
  createToolRateLimiter,
  createToolset,
  defineCaller,
  defineTool,
  expose,
  limitsFromEnv,
  lint,
  checkGrantFilter,
  memoryApprovals,
  memoryGrants,
  memoryAudit,
  memoryCounters,
  memoryHistories,
  memoryLock,
  memoryPeople,
  memoryState,
  metaTools,
  parseCaps,
  parseGroups,
  parseLimits,
  parsePolicies,
  parseToolRateLimits,
  policyFromEnv,
  systemClock,
} = core

/** What is misspelt, the key as it is written, the key that was meant, and the use. */
type Misspelling = readonly [where: string, key: string, meant: string, use: () => unknown]

/** Takes a value past the compiler, as a variable of a wider type does. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type is the caller's to say
function loose<T>(value: unknown): T {
  return value as T
}

const TOOL = defineTool({ name: 'search', execute: () => 'found' })
const VERA = { user: 'vera' }
const NO_GROUPS = new Map()

const gateOf = (options: object): Gate => createGate(loose<GateOptions>({ tools: [TOOL], ...options }))
const viewOf = async () => gateOf({}).view(VERA)
const groupsOf = (group: object) => loose<Parameters<typeof parseGroups>[0]>({ web: { tools: ['search'], ...group } })

const MISSPELLINGS: Readonly<Record<string, readonly Misspelling[]>> = {
  createGate: [
    ['options', 'policies', 'policy', () => gateOf({ policies: [] })],
    ['options', 'polices', 'policy', () => gateOf({ polices: [] })],
    ['options', 'limit', 'limits', () => gateOf({ limit: 'search:1/60' })],
    [
      'a record’s tool',
      'requiredScope',
      'requiredScopes',
      () => gateOf({ tools: { search: { requiredScope: ['x'] } } }),
    ],
    ['history', 'keepMS', 'keepMs', () => gateOf({ history: { keepMS: 1 } })],
    ['groups', 'unlok', 'unlock', () => gateOf({ groups: groupsOf({ unlok: 'request' }) })],
    ['apps', 'imports', 'import', () => gateOf({ apps: { a: { imports: [], tools: ['search'] } } })],
    ['apps', 'tool', 'tools', () => gateOf({ apps: { a: { tool: ['search'] } } })],
    [
      'imports of apps',
      'visibilty',
      'visibility',
      () => gateOf({ groups: groupsOf({}), apps: { a: { import: [{ group: 'web', visibilty: 'hidden' }] } } }),
    ],
    ['hooks', 'beforeToolcall', 'beforeToolCall', () => gateOf({ hooks: { beforeToolcall() {} } })],
    ['view', 'activTools', 'activeTools', () => gateOf({}).view(VERA, loose({ activTools: [] }))],
    ['view’s caller', 'role', 'roles', () => gateOf({}).view(loose({ user: 'vera', role: ['admin'] }))],
    ['narrow', 'polcy', 'policy', async () => (await viewOf()).narrow(loose({ polcy: { deny: ['*'] } }))],
    ['search', 'limt', 'limit', async () => (await viewOf()).search('search', loose({ limt: 1 }))],
    ['call', 'signl', 'signal', async () => (await viewOf()).call(loose({ tool: 'search', signl: undefined }))],
    [
      'call’s run',
      'stp',
      'step',
      async () => (await viewOf()).call(loose({ tool: 'search', run: { id: 'r', stp: 1 } })),
    ],
    [
      'requestApproval',
      'inpt',
      'input',
      async () => (await viewOf()).requestApproval(loose({ tool: 'search', inpt: {} })),
    ],
    ['preview', 'inpt', 'input', async () => (await viewOf()).preview(loose({ tool: 'search', inpt: {} }))],
    ['fork', 'polcy', 'policy', () => gateOf({}).fork(loose({ polcy: { deny: ['*'] } }))],
    ['setPolicy', 'denny', 'deny', () => gateOf({}).setPolicy(loose({ denny: ['*'] }))],
    ['halt', 'usr', 'user', () => gateOf({}).halt(loose({ usr: 'vera', reason: 'r' }))],
    ['release', 'usr', 'user', () => gateOf({}).release(loose({ usr: 'vera' }))],
    ['approvals.list', 'statuss', 'status', () => gateOf({}).approvals.list(loose({ statuss: 'pending' }))],
    ['grants', 'maxMS', 'maxMs', () => createGate({ grants: loose({ maxMS: 5 }) })],
    [
      'approvals.decide',
      'decison',
      'decision',
      () => gateOf({}).approvals.decide(VERA, 'a', loose({ decison: 'approve' })),
    ],
    ['pins.accept', 'hsh', 'hash', () => gateOf({}).pins.accept('search', loose({ hsh: 'x', by: 'vera' }))],
    ['preferences.set', 'group', 'groups', () => gateOf({}).preferences.set(VERA, loose({ group: [], tools: [] }))],
    [
      'catalog pages',
      'limt',
      'limit',
      () =>
        gateOf({})
          .catalog.snapshot()
          .page(loose({ limt: 1 })),
    ],
  ],
  defineResource: [
    [
      'definition',
      'requiredScope',
      'requiredScopes',
      () => core.defineResource(loose({ uri: 'db:a', namespace: 'db', requiredScope: ['x'] })),
    ],
  ],
  defineTemplate: [
    [
      'definition',
      'tag',
      'tags',
      () => core.defineTemplate(loose({ uriTemplate: 'db:{a}', namespace: 'db', tag: ['x'] })),
    ],
  ],
  definePrompt: [
    [
      'definition',
      'argument',
      'arguments',
      () => core.definePrompt(loose({ name: 'a', namespace: 'db', argument: [] })),
    ],
  ],
  defineTool: [
    [
      'definition',
      'requiredScope',
      'requiredScopes',
      () => defineTool(loose<ToolDefinition>({ name: 'a', requiredScope: ['x'] })),
    ],
    ['definition', 'tag', 'tags', () => defineTool(loose<ToolDefinition>({ name: 'a', tag: ['x'] }))],
    [
      'annotations',
      'readonlyHint',
      'readOnlyHint',
      () => defineTool(loose<ToolDefinition>({ name: 'a', annotations: { readonlyHint: true } })),
    ],
  ],
  checkApprovalFilter: [['filter', 'statuss', 'status', () => core.checkApprovalFilter(loose({ statuss: 'pending' }))]],
  defineCaller: [
    ['caller', 'role', 'roles', () => defineCaller(loose({ role: ['admin'] }))],
    ['caller', 'scope', 'scopes', () => defineCaller(loose({ scope: ['x'] }))],
    ['chat', 'typ', 'type', () => defineCaller(loose({ chat: { id: 'c', typ: 'dm' } }))],
  ],
  callerKey: [['caller', 'role', 'roles', () => core.callerKey(loose({ role: ['admin'] }))]],
  parseGroups: [
    ['group', 'dependson', 'dependsOn', () => parseGroups(groupsOf({ dependson: [] }))],
    ['group', 'visibilty', 'visibility', () => parseGroups(groupsOf({ visibilty: 'conditional' }))],
    ['unlock rule', 'evnt', 'event', () => parseGroups(groupsOf({ unlock: { event: 'e', evnt: 'e' } }))],
    [
      'probe',
      'timeoutms',
      'timeoutMs',
      () => parseGroups(groupsOf({ availableWhen: [{ key: 'k', ask() {}, timeoutms: 1 }] })),
    ],
  ],
  parsePolicies: [
    ['policy', 'denny', 'deny', () => parsePolicies(loose({ denny: ['*'] }), NO_GROUPS)],
    ['clause', 'unles', 'unless', () => parsePolicies(loose({ deny: [{ match: '*', unles: 'true' }] }), NO_GROUPS)],
    ['function policy', 'nme', 'name', () => parsePolicies(loose({ nme: 'p', decide: () => 'allow' }), NO_GROUPS)],
  ],
  combinePolicies: [
    ['policy', 'denny', 'deny', () => gateOf({ policy: core.combinePolicies(loose({ denny: ['*'] })) })],
  ],
  parseLimits: [
    ['limit', 'windowms', 'windowMs', () => parseLimits(loose([{ match: '*', max: 1, windowms: 1 }]), NO_GROUPS)],
  ],
  parseToolRateLimits: [
    ['limit', 'windowms', 'windowMs', () => parseToolRateLimits(loose([{ match: '*', max: 1, windowms: 1 }]))],
  ],
  parseCaps: [
    [
      'cap',
      'maxwait',
      'maxWaiting',
      () => parseCaps(loose([{ match: '*', max: 1, maxwaitin: 1, maxwait: 1 }]), NO_GROUPS),
    ],
  ],
  createAvailability: [
    ['options', 'clok', 'clock', () => createAvailability({}, loose({ clok: systemClock }))],
    ['group', 'dependson', 'dependsOn', () => createAvailability(groupsOf({ dependson: [] }) ?? {})],
  ],
  createOriginIndex: [['bounds', 'untrustd', 'untrusted', () => createOriginIndex(loose({ untrustd: 1 }))]],
  createPins: [
    [
      'options',
      'mod',
      'mode',
      () =>
        createPins(loose({ catalog: gateOf({}).catalog, state: memoryState(), clock: systemClock, mod: 'suspend' })),
    ],
  ],
  createApprovals: [
    [
      'ports',
      'onDecide',
      'onDecided',
      () => createApprovals(loose({ approvals: memoryApprovals(), clock: systemClock, onDecide() {} })),
    ],
  ],
  createRedactor: [['options', 'secret', 'secrets', () => createRedactor(loose({ secret: ['correct horse'] }))]],
  createSteps: [
    [
      'options',
      'prepareStp',
      'prepareStep',
      async () => createSteps(await viewOf(), loose<StepsOptions<undefined, undefined>>({ prepareStp() {} })),
    ],
    [
      'an answer',
      'activTools',
      'activeTools',
      async () =>
        createSteps(await viewOf(), { prepareStep: () => loose<StepChange<undefined>>({ activTools: [] }) }).next(),
    ],
    [
      'a call',
      'stats',
      'status',
      async () => {
        const steps = createSteps(await viewOf())
        await steps.next()
        steps.record(loose({ tool: 'search', callId: 'c', stats: 'done' }))
      },
    ],
  ],
  createToolRateLimiter: [
    ['options', 'tool', 'tools', () => createToolRateLimiter('search:1/60', loose({ tool: [TOOL] }))],
  ],
  createToolset: [['page', 'cursr', 'cursor', () => createToolset([TOOL]).page(loose({ cursr: 'x' }))]],
  buildToolset: [
    ['options', 'policies', 'policy', () => buildToolset(loose({ from: [TOOL], policies: { deny: ['*'] } }))],
    ['options', 'filter', 'filters', () => buildToolset(loose({ from: [TOOL], filter: [() => false] }))],
  ],
  expose: [['options', 'strct', 'strict', async () => expose(await viewOf(), 'mcp', loose({ strct: true }))]],
  dryRun: [
    ['call', 'histroy', 'history', async () => core.dryRun(await viewOf(), loose({ tool: 'search', histroy: {} }))],
  ],
  defineTarget: [
    ['definition', 'nme', 'name', () => core.defineTarget(loose<TargetDefinition<object>>({ nme: 'x', shape() {} }))],
  ],
  fromOpenAiTools: [['options', 'overlayy', 'overlay', () => core.fromOpenAiTools([], loose({ overlayy: {} }))]],
  fromAnthropicTools: [['options', 'overlayy', 'overlay', () => core.fromAnthropicTools([], loose({ overlayy: {} }))]],
  fromGeminiTools: [['options', 'overlayy', 'overlay', () => core.fromGeminiTools([], loose({ overlayy: {} }))]],
  fromBedrockTools: [['options', 'overlayy', 'overlay', () => core.fromBedrockTools([], loose({ overlayy: {} }))]],
  lint: [['options', 'polcy', 'policy', () => lint(loose({ tools: [], polcy: {} }))]],
  limitsFromEnv: [['options', 'group', 'groups', () => limitsFromEnv({}, loose({ group: {} }))]],
  policyFromEnv: [['options', 'group', 'groups', () => policyFromEnv({}, loose({ group: {} }))]],
  memoryGrants: [['list', 'tennant', 'tenant', () => memoryGrants().list(loose({ tennant: 'acme' }), 0)]],
  checkGrantFilter: [['filter', 'usr', 'user', () => checkGrantFilter(loose({ usr: 'vera' }))]],
  memoryApprovals: [
    ['options', 'ttl', 'ttlMs', () => memoryApprovals(loose({ ttl: 1 }))],
    ['list', 'tennant', 'tenant', () => memoryApprovals().list(loose({ tennant: 'acme' }), 0)],
  ],
  memoryAudit: [
    ['options', 'redct', 'redact', () => memoryAudit(loose({ redct: undefined }))],
    ['query', 'usr', 'user', () => memoryAudit().query(loose({ usr: 'vera' }))],
    [
      'countOutcomes',
      'bucket',
      'bucketMs',
      () => memoryAudit().countOutcomes(loose({ since: 0, until: 1, bucket: 1 })),
    ],
    ['exportRecords', 'usr', 'user', () => Array.fromAsync(memoryAudit().exportRecords(loose({ usr: 'vera' })))],
  ],
  memoryAvailability: [
    ['a state', 'availble', 'available', () => core.memoryAvailability(loose({ web: { availble: true } }))],
    ['set', 'reson', 'reason', () => core.memoryAvailability().set('web', loose({ available: false, reson: 'r' }))],
  ],
  memoryHistories: [['options', 'maxByte', 'maxBytes', () => memoryHistories(loose({ maxByte: 1 }))]],
  memoryCounters: [['options', 'maxkeys', 'maxKeys', () => memoryCounters(loose({ clock: systemClock, maxkeys: 1 }))]],
  memoryLock: [
    ['options', 'clok', 'clock', () => memoryLock(loose({ clok: systemClock }))],
    ['acquire', 'deadlinMs', 'deadlineMs', () => memoryLock().acquire('s', loose({ deadlinMs: 1 }))],
  ],
  memoryPeople: [['options', 'maks', 'max', () => memoryPeople(loose({ maks: 1 }))]],
  memoryState: [
    ['options', 'clok', 'clock', () => memoryState(loose({ clok: systemClock }))],
    ['set', 'expireAt', 'expiresAt', () => memoryState().set('k', 1, loose({ expireAt: 1 }))],
    ['add', 'expireAt', 'expiresAt', () => memoryState().add('k', 1, loose({ expireAt: 1 }))],
  ],
  itemsOfSnapshot: [
    ['a snapshot', 'item', 'items', () => change.itemsOfSnapshot({ version: 1, item: [] })],
    [
      'an item',
      'tag',
      'tags',
      () => change.itemsOfSnapshot({ version: 1, items: [{ id: 'search', name: 'search', tag: ['read'] }] }),
    ],
  ],
  testPolicies: [
    [
      'options',
      'policies',
      'policy',
      async () => change.testPolicies(loose({ catalog: [TOOL], tests: [], policies: {} })),
    ],
    [
      'a test',
      'expct',
      'expect',
      async () =>
        change.testPolicies(
          loose({ catalog: [TOOL], tests: [{ shows: 'it', expect: { sees: ['search'] }, expct: {} }] }),
        ),
    ],
  ],
  findClauseExamples: [
    [
      'options',
      'policies',
      'policy',
      async () => changeInternal.findClauseExamples(loose({ catalog: [TOOL], policies: {} })),
    ],
  ],
  readRecords: [
    ['query', 'sinc', 'since', () => Array.fromAsync(change.readRecords(memoryAudit(), loose({ sinc: 0 })).records)],
  ],
  whatIf: [
    [
      'options',
      'record',
      'records',
      async () => change.whatIf(loose({ before: { catalog: [] }, after: { catalog: [] }, records: [], record: [] })),
    ],
  ],
  suggestPolicy: [
    [
      'options',
      'record',
      'records',
      async () => change.suggestPolicy(loose({ rules: { catalog: [] }, records: [], record: [] })),
    ],
  ],
  comparePolicies: [
    [
      'options',
      'befor',
      'before',
      async () => change.comparePolicies(loose({ befor: {}, before: { catalog: [] }, after: { catalog: [] } })),
    ],
    [
      'others',
      'isUsr',
      'isUser',
      async () =>
        change.comparePolicies(
          loose({ before: { catalog: [] }, after: { catalog: [] }, others: [{ fields: {}, isUsr: () => true }] }),
        ),
    ],
  ],
  checkPolicyTests: [
    [
      'options',
      'limit',
      'limits',
      async () => change.checkPolicyTests(loose({ catalog: [TOOL], tests: [], limit: [] })),
    ],
  ],
  metaTools: [['options', 'onfond', 'onFound', () => metaTools(loose({ onfond() {} }))]],
}

/** Functions without an options object: what they take is a value, a list or a function. */
const WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'CallHistory',
  'CelMap',
  'Failure',
  'Histories',
  'InputRequired',
  'LinkedList',
  'Mirror',
  'OpenHistory',
  'Revision',
  'Uint',
  'Uses',
  'absorb',
  'acceptedInput',
  'allowIds',
  'and',
  'answerOf',
  'answersOf',
  'approvalAt',
  'approvalKeys',
  'approvalStatusAt',
  'askEach',
  'backgroundTimeout',
  'backoffMs',
  'byCategory',
  'byNamespace',
  'byTagsAll',
  'byTagsAny',
  'byTagsNone',
  'callAll',
  'callerEffects',
  'callerParts',
  'callingOf',
  'canonicalize',
  'capOutput',
  'catchRejection',
  'chain',
  'checkDefinition',
  'checkHistory',
  'checkMethods',
  'checkObject',
  'checkPendingApprovals',
  'checkShape',
  'checkStateKey',
  'checkStatePrefix',
  'childrenOf',
  'clauseText',
  'coerceInput',
  'combineTelemetry',
  'comparePeople',
  'compareStrictness',
  'compareToolIds',
  'compareUnits',
  'compileCoercer',
  'compileDocument',
  'countNodes',
  'countedAs',
  'countsOf',
  'coversApprover',
  'createBoundedCache',
  'createCanceller',
  'createDeadlines',
  'createEmitter',
  'createEnvironment',
  'createFindings',
  'createReferences',
  'createShares',
  'createSlots',
  'createStates',
  'createTrial',
  'createUsesOfTool',
  'createValidator',
  'createWireNames',
  'cut',
  'cutText',
  'decide',
  'decideShadows',
  'decideWithInput',
  'decidedApproval',
  'deepFreeze',
  'definitionHash',
  'denyIds',
  'describeApprover',
  'describeExcess',
  'describeUnknown',
  'dialectOf',
  'didYouMean',
  'editDistance',
  'endOfString',
  'endsWithin',
  'enforcedOf',
  'enterSaid',
  'errnoOf',
  'escapePointer',
  'evaluate',
  'hasApproved',
  'missingRoles',
  'needsVotes',
  'patchedFields',
  'peopleOf',
  'voterOf',
  'withPatch',
  'factsOf',
  'findEach',
  'findField',
  'findIdleClauses',
  'findSkipped',
  'findText',
  'fixedEffects',
  'foldMarks',
  'formatCodePoint',
  'formatNonAscii',
  'formatSnapshot',
  'frozenCopy',
  'hasBit',
  'hasNullsLeftOut',
  'hasUsedToolIn',
  'hashRecord',
  'historyUse',
  'hmacSha256Hex',
  'holdsBigint',
  'host',
  'idKeyword',
  'indexPolicy',
  'inputsRemovedBefore',
  'isAtCall',
  'isDefinedCaller',
  'isEndSeen',
  'isErrorOf',
  'isItemId',
  'isLiveAt',
  'isMacro',
  'isNormalUri',
  'isNumber',
  'isObject',
  'isOwnTool',
  'isPlain',
  'isReadableStream',
  'isRequestTool',
  'isShownWhole',
  'isStream',
  'isThenable',
  'isToolError',
  'isUntil',
  'isView',
  'isViewOf',
  'joinLetters',
  'joinOperands',
  'joined',
  'joinedPerson',
  'kindOfId',
  'lintLimits',
  'listApps',
  'listPolicies',
  'makersOf',
  'markNullsLeftOut',
  'markOwnTool',
  'markPassingTool',
  'matchesGlob',
  'matchesSelector',
  'matchesUri',
  'mayApproveByDefault',
  'mayGoOn',
  'mayStillNow',
  'measureJson',
  'messageFor',
  'messageOf',
  'metaSchemasOf',
  'mutableCopy',
  'nearestNames',
  'nearestOf',
  'not',
  'notOther',
  'operandsOfCall',
  'or',
  'originalHash',
  'outputText',
  'overload',
  'parseAliases',
  'parseCelFor',
  'parseGlob',
  'parseHooks',
  'parseLabels',
  'parseRecord',
  'parseSelector',
  'parseStateText',
  'parseUriTemplate',
  'pointOf',
  'portsOf',
  'preview',
  'probeInputs',
  'problemWithFields',
  'raiseLabels',
  'readCallerAs',
  'readJson',
  'readOwnJson',
  'readUtf8',
  'readsAsUnknown',
  'readsCall',
  'readsRun',
  'reason',
  'reasonsAt',
  'refusedNow',
  'retryAfterSeconds',
  'rightsKeyOf',
  'ruleText',
  'runWithDeadline',
  'safely',
  'sealedOf',
  'sendersFromEnv',
  'sha256Hex',
  'shapeOf',
  'sizeOf',
  'spend',
  'startTask',
  'strictest',
  'strictestApprover',
  'strictestFacts',
  'takeSnapshot',
  'takeUnknownRead',
  'tellEach',
  'templatesOf',
  'textOf',
  'titleOf',
  'toCallView',
  'toCancelling',
  'toCelTool',
  'toGroupMap',
  'toInteger',
  'toJsonText',
  'toNamedMap',
  'toNormalUri',
  'toPersonKey',
  'toPlainGlob',
  'toPlainUri',
  'toSnapshot',
  'toStateExpiry',
  'toStateText',
  'toToolId',
  'toWireName',
  'checkLiveGrants',
  'grantAt',
  'grantText',
  'grantedBefore',
  'isGrantOver',
  'matchesGrant',
  'revokedGrant',
  'tooManyApprovals',
  'tooManyGrants',
  'toolErrorOf',
  'trailLines',
  'uncertainValue',
  'unchanged',
  'unescapePointer',
  'unjudgedId',
  'unlock',
  'valuesOf',
  'watchStream',
  'whatWouldAllow',
  'wishesFor',
  'withCosts',
  'withDeadline',
  'withFewerItems',
  'withInputs',
  'withTools',
  'within',
  'withoutNullKeywords',
  'wordOf',
])

const AUDIT_MISSPELLINGS: typeof MISSPELLINGS = {
  createVerifier: [
    ['options', 'sined', 'signed', () => audit.createVerifier(loose({ sined: [] }))],
    ['finish', 'tor', 'torn', () => audit.createVerifier().finish(loose({ tor: true }))],
  ],
  checkCountQuery: [['query', 'bucket', 'bucketMs', () => audit.checkCountQuery(loose({ bucket: 1 }))]],
  checkAuditQuery: [['query', 'usr', 'user', () => audit.checkAuditQuery(loose({ usr: 'vera' }))]],
  sealEntry: [
    [
      'options',
      'prevew',
      'preview',
      () => audit.sealEntry(loose({ event: 'tool_call', wallMs: 0 }), 1, loose({ prevew: false })),
    ],
  ],
  createInputOpener: [['options', 'kye', 'key', () => audit.createInputOpener(loose({ kye: '' }))]],
  createSealer: [['options', 'prevew', 'preview', () => audit.createSealer(loose({ prevew: false }))]],
}

const AUDIT_WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'checkGrowthProof',
  'checkTlogProof',
  'consistencyParts',
  'countLeaves',
  'createLeaf',
  'createMerkleTree',
  'createNoteSigner',
  'createNoteVerifier',
  'createOutcomeTally',
  'createPartRoots',
  'createRecordTree',
  'createWitnessVerifier',
  'eventOfOutcome',
  'formatGrowthProof',
  'formatTlogProof',
  'hashOfText',
  'holdEntry',
  'inclusionParts',
  'matchesAuditQuery',
  'newSigningKey',
  'openNote',
  'outcomeOfRecord',
  'parseGrowthProof',
  'parseLeaf',
  'parseTlogProof',
  'parseTreeHead',
  'placeOf',
  'readLink',
  'readSeq',
  'recordKeys',
  'verifyConsistency',
  'worse',
])

const TELEMETRY_MISSPELLINGS: typeof MISSPELLINGS = {
  openTelemetry: [
    ['options', 'redct', 'redact', () => telemetry.openTelemetry(loose({ redct: (value: unknown) => value }))],
  ],
  createSdkFinder: [
    [
      'options',
      'meterr',
      'meter',
      () =>
        telemetry.createSdkFinder(loose<telemetry.SdkOptions<void>>({ name: 'n', createInstruments() {}, meterr: 1 })),
    ],
  ],
}

const ENTRIES = [
  ['@toolgate/core', core, MISSPELLINGS, WITHOUT_OPTIONS],
  ['@toolgate/core/audit', audit, AUDIT_MISSPELLINGS, AUDIT_WITHOUT_OPTIONS],
  ['@toolgate/core/telemetry', telemetry, TELEMETRY_MISSPELLINGS, new Set(['runWithin'])],
] as const

for (const [entry, exported, misspellings, withoutOptions] of ENTRIES)
  describe(`options of ${entry}`, () => {
    it('are listed here for every exported function', () => {
      const listed = [...Object.keys(misspellings), ...withoutOptions].toSorted()
      assert.deepEqual(listed, functionsOf(exported))
    })

    for (const [name, cases] of Object.entries(misspellings))
      for (const [where, key, meant, use] of cases)
        it(`of ${name}: ${where} with "${key}" name "${meant}"`, async () => {
          await assert.rejects(
            async () => use(),
            (error: Error) =>
              error instanceof core.ToolgateError &&
              error.message.includes(key) &&
              error.message.includes(`did you mean "${meant}"?`),
          )
        })
  })

/** Errors are made by us, and have a class. */
function functionsOf(exported: object): readonly string[] {
  return Object.entries(exported)
    .filter(([, value]) => typeof value === 'function' && !(value.prototype instanceof Error))
    .map(([name]) => name)
    .toSorted()
}

describe('options', () => {
  it('may be absent, and their keys undefined', async () => {
    const view = await gateOf({ policy: undefined }).view(VERA, { activeTools: undefined })
    assert.equal((await view.call({ tool: 'search', input: {}, signal: undefined })).status, 'done')
    assert.equal(view.narrow({}), view)
    assert.ok(memoryLock({ clock: manualClock() }))
  })
})

describe('a promise that nobody awaited', () => {
  const late = (value: object) => loose<never>(Promise.resolve(value))
  const uses: Readonly<Record<string, () => unknown>> = {
    'createGate: all options': () => createGate(late({ policy: { deny: ['*'] } })),
    'createGate: policy': () => gateOf({ policy: late({ deny: ['*'] }) }),
    'createGate: one policy of a list': () => gateOf({ policy: [{}, late({ deny: ['*'] })] }),
    'createGate: tools': () => createGate({ tools: late({}) }),
    'createGate: groups': () => gateOf({ groups: late({}) }),
    'createGate: apps': () => gateOf({ apps: late({}) }),
    'createGate: aliases': () => gateOf({ aliases: late({}) }),
    'createGate: pins': () => gateOf({ pins: late({}) }),
    'gate.setPolicy': () => gateOf({}).setPolicy(late({ deny: ['*'] })),
    'gate.fork': () => gateOf({}).fork(late({})),
    'gate.view: the caller': () => gateOf({}).view(late(VERA)),
    'gate.view: the options': () => gateOf({}).view(VERA, late({ activeTools: [] })),
    'view.narrow': async () => (await viewOf()).narrow(late({ activeTools: [] })),
    'lint: groups': () => lint({ tools: [TOOL], groups: late({}) }),
  }
  for (const [where, use] of Object.entries(uses))
    it(`${where}: is an error, and does not count as an object that says nothing`, async () => {
      await assert.rejects(async () => use(), /is a promise: await it first/)
    })
})

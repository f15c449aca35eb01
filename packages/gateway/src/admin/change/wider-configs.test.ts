import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import { toSnapshot } from '@toolgate/change'
import { definePrompt, defineResource } from '@toolgate/core/toolset'
import { loadConfig } from '../../config/load-config.ts'
import { compareConfigs } from './compare-configs.ts'

const namespace = 'files'
const CATALOG = toSnapshot([
  defineTool({ namespace, name: 'read_file', annotations: { readOnlyHint: true }, hintsTrusted: false }),
  defineTool({
    namespace,
    name: 'write_file',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } } },
  }),
  defineTool({ namespace, name: 'delete_file' }),
  defineResource({ namespace, uri: 'file:///docs/a.md' }),
  definePrompt({ namespace, name: 'review' }),
])

let folder: string
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolgate-judged-'))
})
after(() => rmSync(folder, { recursive: true }))

type Sections = Readonly<Record<string, unknown>>

const FILES = { command: 'node', offers: ['tools', 'resources', 'prompts'] }
const DEFAULTS: Sections = {
  servers: { files: FILES },
  callers: [
    { key: 'k1-of-olga', user: 'olga', roles: ['operator'] },
    { key: 'k2-of-vera', user: 'vera' },
  ],
  policy: [{ allow: ['*', 'resource:files:*', 'prompt:files:*'] }],
}
const files = (more: object) => ({ servers: { files: { ...FILES, ...more } } })
const policy = (more: object) => ({ policy: [{ allow: ['*'], ...more }] })
const deny = (...clauses: readonly unknown[]) => policy({ deny: clauses })

function load(name: string, sections: Sections) {
  const file = join(folder, name)
  writeFileSync(file, JSON.stringify({ ...DEFAULTS, ...sections }))
  return loadConfig(file, { env: {} })
}

const compare = (from: Sections, to: Sections) =>
  compareConfigs(load('before.yaml', from), load('after.yaml', to), CATALOG)

const group = (more: object = {}, tools: readonly string[] = ['files:*']) => ({ web: { tools, ...more } })
const LOCK = { hint: 'h', unlock: 'request' }
const APPS = { apps: { x: { import: ['web'] } }, callers: [{ key: 'k1-of-olga', user: 'olga', apps: ['x'] }] }
const OAUTH = {
  publicUrl: 'https://tools.example.com',
  oauth: { issuers: [{ issuer: 'https://idp.example.com', name: 'idp', claims: { roles: 'groups' } }] },
}
const issuer = (more: object) => ({ ...OAUTH, oauth: { issuers: [{ ...OAUTH.oauth.issuers[0], ...more }] } })
const tools = (overlays: object) => files({ tools: overlays })

describe('compareConfigs, of what lets more through', () => {
  const wider: readonly (readonly [what: string, from: Sections, to: Sections])[] = [
    [
      'a limit whose group has fewer tools',
      { limits: ['group:web:5/60'], groups: group() },
      { limits: ['group:web:5/60'], groups: group({}, ['files:read_file']) },
    ],
    [
      'a limit on a tag that a tool no longer has',
      { limits: ['tag:slow:5/60'], ...tools({ '*': { tags: ['slow'] } }) },
      { limits: ['tag:slow:5/60'], ...tools({ read_file: { tags: ['slow'] } }) },
    ],
    [
      'a limit on an alias of another tool',
      { limits: ['exec:5/60'], aliases: { exec: 'files:write_file' } },
      { limits: ['exec:5/60'], aliases: { exec: 'files:read_file' } },
    ],
    ['a limit with a longer window', { limits: ['*:5/60'] }, { limits: ['*:5/6'] }],
    [
      'a cap whose group has fewer tools',
      { calls: { concurrency: ['group:web:5'] }, groups: group() },
      { calls: { concurrency: ['group:web:5'] }, groups: group({}, ['files:read_file']) },
    ],
    ['more calls at once', { calls: { concurrency: ['files:*:1'] } }, { calls: { concurrency: ['files:*:2'] } }],
    ['a longer output', { calls: { maxOutputChars: 1000 } }, { calls: { maxOutputChars: 100_000 } }],
    [
      'an app whose group has more tools',
      { ...APPS, groups: group({}, ['files:read_file']) },
      { ...APPS, groups: group() },
    ],
    [
      'an app whose tag has more tools',
      { ...APPS, groups: group({}, ['tag:x']), ...tools({ read_file: { tags: ['x'] } }) },
      { ...APPS, groups: group({}, ['tag:x']), ...tools({ '*': { tags: ['x'] } }) },
    ],
    [
      'an app whose policy is about an alias',
      { aliases: { exec: 'files:write_file' }, apps: { x: { tools: ['*'], policy: [{ deny: ['exec'] }] } } },
      { aliases: { exec: 'files:read_file' }, apps: { x: { tools: ['*'], policy: [{ deny: ['exec'] }] } } },
    ],
    [
      'an app whose policy reads how long labels count',
      {
        history: { labelMs: 1000 },
        apps: { x: { tools: ['*'], policy: [{ deny: [{ match: '*', input: "'untrusted' in run.labels" }] }] } },
      },
      {
        history: { labelMs: 1 },
        apps: { x: { tools: ['*'], policy: [{ deny: [{ match: '*', input: "'untrusted' in run.labels" }] }] } },
      },
    ],
    ['an app more', {}, { apps: { x: { tools: ['*'] } } }],
    [
      'a key that opens more apps',
      { ...APPS, groups: group() },
      { ...APPS, groups: group(), callers: [{ key: 'k1-of-olga', user: 'olga' }] },
    ],
    [
      'a locked group without a tool that another tag gave',
      { groups: group(LOCK, ['tag:x']), ...tools({ '*': { tags: ['x'] } }) },
      { groups: group(LOCK, ['tag:x']), ...tools({ read_file: { tags: ['x'] } }) },
    ],
    [
      'a locked group of an alias of another tool',
      { groups: group(LOCK, ['exec']), aliases: { exec: 'files:write_file' } },
      { groups: group(LOCK, ['exec']), aliases: { exec: 'files:read_file' } },
    ],
    [
      'a locked group of destructive tools, and hints that are trusted',
      { groups: group(LOCK, ['hint:destructive']) },
      { groups: group(LOCK, ['hint:destructive']), ...files({ trustHints: true }) },
    ],
    [
      'a group that no longer depends on another',
      { groups: { ...group({ dependsOn: ['net'] }), net: { tools: ['x'], availableWhen: [{ env: 'NET' }] } } },
      { groups: { ...group(), net: { tools: ['x'], availableWhen: [{ env: 'NET' }] } } },
    ],
    [
      'a group that no longer depends on a server',
      { groups: group({ availableWhen: [{ server: 'files' }] }) },
      { groups: group() },
    ],
    [
      'a probe of another variable',
      { groups: group({ availableWhen: [{ env: 'A' }] }) },
      { groups: group({ availableWhen: [{ env: 'B' }] }) },
    ],
    [
      'a search that can open groups',
      { search: 'never', groups: group({ hint: 'h', unlock: 'search' }) },
      { search: 'always', groups: group({ hint: 'h', unlock: 'search' }) },
    ],
    ['another place of halts', { state: { path: 'a.db' } }, { state: { path: 'b.db' } }],
    ['halts in memory', {}, { state: { store: 'memory' } }],
    [
      'another database of halts',
      { stores: { postgres: 'postgres://a.example.com/a' } },
      { stores: { postgres: 'postgres://b.example.com/a' } },
    ],
    ['a tool that is no longer off', tools({ secret_file: { enabled: false } }), {}],
    [
      'a tool that is on again',
      tools({ '*': { enabled: false } }),
      tools({ '*': { enabled: false }, write_file: { enabled: true } }),
    ],
    [
      'overlays in another order',
      tools({ write_file: { enabled: true }, '*': { enabled: false } }),
      tools({ '*': { enabled: false }, write_file: { enabled: true } }),
    ],
    ['a tag that a tool is denied by', { ...deny('tag:x'), ...tools({ write_file: { tags: ['x'] } }) }, deny('tag:x')],
    [
      'a tag that a tool is allowed by',
      { policy: [{ allow: ['tag:x'] }] },
      { policy: [{ allow: ['tag:x'] }], ...tools({ write_file: { tags: ['x'] } }) },
    ],
    [
      'a category',
      { ...deny('category:x'), ...tools({ write_file: { category: 'x' } }) },
      { ...deny('category:x'), ...tools({ write_file: { category: 'y' } }) },
    ],
    [
      'annotations',
      { policy: [{ allow: ['hint:read-only'] }] },
      { policy: [{ allow: ['hint:read-only'] }], ...tools({ write_file: { annotations: { readOnlyHint: true } } }) },
    ],
    [
      'trust in hints',
      { policy: [{ allow: ['hint:read-only'] }] },
      { policy: [{ allow: ['hint:read-only'] }], ...files({ trustHints: true }) },
    ],
    ['a scope that a tool needs', tools({ write_file: { requiredScopes: ['w'] } }), {}],
    [
      'fewer addressees',
      {
        ...deny({ match: '*', input: "origin(addressees) != 'user'" }),
        ...tools({ write_file: { addressees: ['to'] } }),
      },
      deny({ match: '*', input: "origin(addressees) != 'user'" }),
    ],
    [
      'a rule about calls of tools with a hint, and hints that are trusted',
      deny({ match: 'files:write_file', input: "!run.called('hint:read-only')" }),
      {
        ...deny({ match: 'files:write_file', input: "!run.called('hint:read-only')" }),
        ...files({ trustHints: true }),
      },
    ],
    [
      'a rule about calls of an alias',
      { aliases: { exec: 'files:delete_file' }, ...deny({ match: 'files:write_file', input: "!run.called('exec')" }) },
      { aliases: { exec: 'files:read_file' }, ...deny({ match: 'files:write_file', input: "!run.called('exec')" }) },
    ],
    [
      'a label that a tool no longer gives',
      { labels: { secret: ['files:read_file'] }, ...deny({ match: '*', input: "'secret' in run.labels" }) },
      { labels: { secret: ['files:delete_file'] }, ...deny({ match: '*', input: "'secret' in run.labels" }) },
    ],
    [
      'a label of a group with fewer tools',
      { groups: group(), labels: { secret: ['group:web'] }, ...deny({ match: '*', input: "'secret' in run.labels" }) },
      {
        groups: group({}, ['files:write_file']),
        labels: { secret: ['group:web'] },
        ...deny({ match: '*', input: "'secret' in run.labels" }),
      },
    ],
    [
      'trust in a tool',
      deny({ match: '*', input: "'untrusted' in run.labels" }),
      { ...deny({ match: '*', input: "'untrusted' in run.labels" }), labels: { trusted: ['files:read_file'] } },
    ],
    [
      'labels that count for a shorter time',
      { history: { labelMs: 1000 }, ...deny({ match: '*', input: "'untrusted' in run.labels" }) },
      { history: { labelMs: 1 }, ...deny({ match: '*', input: "'untrusted' in run.labels" }) },
    ],
    [
      'labels that a server no longer raises',
      {
        labels: { secret: ['x'] },
        ...files({ accepts: ['secret'] }),
        ...deny({ match: '*', input: "'secret' in run.labels" }),
      },
      { labels: { secret: ['x'] }, ...deny({ match: '*', input: "'secret' in run.labels" }) },
    ],
    [
      'calls that count for longer',
      {
        history: { calledMs: 1 },
        policy: [{ allow: ['files:read_file', { match: 'files:write_file', input: "run.called('files:read_file')" }] }],
      },
      {
        history: { calledMs: 100_000 },
        policy: [{ allow: ['files:read_file', { match: 'files:write_file', input: "run.called('files:read_file')" }] }],
      },
    ],
    ['a rule that becomes a shadow', deny('files:write_file'), deny({ match: 'files:write_file', mode: 'shadow' })],
    [
      'a policy that becomes a shadow',
      { policy: [{ allow: ['*'] }, { deny: ['files:write_file'] }] },
      { policy: [{ allow: ['*'] }, { deny: ['files:write_file'], mode: 'shadow' }] },
    ],
    ['an approval by oneself', policy({ ask: [{ match: '*', by: 'other' }] }), policy({ ask: ['*'] })],
    [
      'an approval a longer time after the login',
      policy({ ask: [{ match: '*', login: '5m' }] }),
      policy({ ask: [{ match: '*', login: '1h' }] }),
    ],
    ['approvals that hold for longer', { approvals: { ttlMs: 1000 } }, { approvals: { ttlMs: 100_000 } }],
    [
      'an approver',
      {},
      {
        callers: [
          ...(DEFAULTS['callers'] as object[]),
          { key: 'k3-of-anna', for: 'console', user: 'anna', roles: ['approver'] },
        ],
      },
    ],
    [
      'a role',
      { callers: [{ key: 'k2-of-vera', user: 'vera' }] },
      { callers: [{ key: 'k2-of-vera', user: 'vera', roles: ['operator'] }] },
    ],
    [
      'a role fewer, which a rule denies',
      {
        callers: [{ key: 'k2-of-vera', user: 'vera', roles: ['guest'] }],
        ...deny({ match: '*', when: "'guest' in caller.roles" }),
      },
      { callers: [{ key: 'k2-of-vera', user: 'vera' }], ...deny({ match: '*', when: "'guest' in caller.roles" }) },
    ],
    [
      'another tenant',
      { callers: [{ key: 'k2-of-vera', user: 'vera', tenant: 'a' }] },
      { callers: [{ key: 'k2-of-vera', user: 'vera', tenant: 'b' }] },
    ],
    [
      'a key without an end',
      { callers: [{ key: 'k2-of-vera', user: 'vera', expires: '2027-01-31' }] },
      { callers: [{ key: 'k2-of-vera', user: 'vera' }] },
    ],
    ['the tenant of tokens', issuer({ tenant: 'a' }), issuer({ tenant: 'b' })],
    ['the claim of the roles', OAUTH, issuer({ claims: { roles: 'teams' } })],
    ['the claim of the scopes', OAUTH, issuer({ claims: { roles: 'groups', scopes: 'rights' } })],
    ['tokens for others', OAUTH, issuer({ audiences: ['https://other.example.com'] })],
    ['tokens for another URL', OAUTH, { ...OAUTH, publicUrl: 'https://other.example.com' }],
    [
      'scopes that callers may still get',
      { ...OAUTH, ...tools({ write_file: { requiredScopes: ['w'] } }) },
      { ...OAUTH, oauth: { ...OAUTH.oauth, stepUp: ['w'] }, ...tools({ write_file: { requiredScopes: ['w'] } }) },
    ],
    [
      'people who log in with a role',
      { publicUrl: OAUTH.publicUrl, oidc: { issuer: 'https://idp.example.com', clientId: 'c', roles: { staff: [] } } },
      {
        publicUrl: OAUTH.publicUrl,
        oidc: { issuer: 'https://idp.example.com', clientId: 'c', roles: { staff: ['approver'] } },
      },
    ],
    ['a tool with a definition that changed', { pins: 'suspend' }, { pins: 'warn' }],
    ['a definition with invisible characters', { definitions: 'quarantine' }, { definitions: 'warn' }],
    ['metrics for everybody', {}, { metrics: { public: true } }],
    ['a redaction fewer', { redact: { keys: ['pin'] } }, {}],
    [
      'a server under another name',
      { servers: { files: FILES, git: { command: 'git' } } },
      { servers: { files: FILES, hub: { command: 'git' } } },
    ],
    [
      'two servers that swap their names',
      { servers: { files: FILES, git: { command: 'git' } } },
      { servers: { files: { ...FILES, command: 'git' }, git: { command: 'node' } } },
    ],
    [
      'two servers with resources in another order',
      { servers: { files: FILES, docs: FILES } },
      { servers: { docs: FILES, files: FILES } },
    ],
    [
      'one of two servers that have resources',
      { servers: { files: FILES, docs: FILES } },
      { servers: { files: FILES } },
    ],
    ['a server with other arguments', {}, files({ args: ['/'] })],
    ['a server with another variable', files({ env: { ROOT: '/a' } }), files({ env: { ROOT: '/' } })],
    ['a server that all users share', {}, files({ per: 'shared' })],
    ['a server that lists for each user', {}, files({ listing: 'user' })],
    ['a server that may ask', {}, files({ may: ['elicit'] })],
    [
      'a person who reads what is there',
      {},
      tools({ write_file: { compare: { text: 'input.to', with: 'read_file', input: {} } } }),
    ],
    ['tags of unlisted resources', files({ resources: { '*': { requiredScopes: ['w'] } } }), {}],
    [
      'a tag that a prompt needs',
      { policy: [{ allow: ['prompt:files:*'], requireTags: ['x'] }] },
      {
        policy: [{ allow: ['prompt:files:*'], requireTags: ['x'] }],
        ...files({ prompts: { review: { tags: ['x'] } } }),
      },
    ],
    ['a prompt', policy({}), { policy: [{ allow: ['*', 'prompt:files:*'] }] }],
    ['a resource', policy({}), { policy: [{ allow: ['*', 'resource:files:*'] }] }],
    [
      'a rule about a server of which the catalog has nothing',
      { servers: { files: FILES, git: { command: 'git' } }, ...deny('git:*') },
      { servers: { files: FILES, git: { command: 'git' } }, ...policy({}) },
    ],
    [
      'a rule about prompts of a server of which the catalog has none',
      { servers: { files: FILES, git: { command: 'git', offers: ['prompts'] } }, ...policy({}) },
      {
        servers: { files: FILES, git: { command: 'git', offers: ['prompts'] } },
        policy: [{ allow: ['*', 'prompt:git:*'] }],
      },
    ],
    [
      'a rule about resources of a server of which the catalog has none',
      { servers: { files: FILES, git: { command: 'git', offers: ['resources'] } }, ...policy({}) },
      {
        servers: { files: FILES, git: { command: 'git', offers: ['resources'] } },
        policy: [{ allow: ['*', 'resource:git:*'] }],
      },
    ],
    [
      'a group that depends on the state of a server',
      { groups: group({ availableWhen: [{ server: 'files' }] }) },
      { groups: group({ availableWhen: [{ env: 'PATH' }] }) },
    ],
    [
      'a longer life of an answer',
      { groups: group({ availableWhen: [{ env: 'A' }], ttlMs: 1 }) },
      { groups: group({ availableWhen: [{ env: 'A' }], ttlMs: 100_000 }) },
    ],
    ['records that nothing waits for', { audit: { mode: 'required' } }, { audit: { mode: 'batched' } }],
    [
      'rules about the tenant',
      { ...issuer({ tenant: 'a' }), ...deny({ match: '*', when: "caller.tenant == 'a'" }) },
      { ...issuer({ tenant: 'a' }), ...policy({}) },
    ],
    ['more instances', { instances: { max: 1 } }, { instances: { max: 2 } }],
    ['another host', { listen: { host: '127.0.0.1' } }, { listen: { host: '0.0.0.0' } }],
    ['a web page of another origin', {}, { listen: { origins: ['https://evil.example.com'] } }],
    ['a tool that requires fewer tags', policy({ requireTags: ['x'] }), policy({})],
  ]
  for (const [what, from, to] of wider)
    it(`does not say yes to ${what}`, async () => {
      assert.equal((await compare(from, from)).grantsNoMore, 'yes')
      assert.notEqual((await compare(from, to)).grantsNoMore, 'yes')
    })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import type { Policies } from '../policy/policy.ts'
import { definePrompt, defineResource, defineTemplate } from '../tools/items.ts'
import { defineTool } from '../tools/tool.ts'
import { lint, type LintOptions } from './lint.ts'

const toolsOf = (...ids: readonly string[]) =>
  ids.map((id) => {
    const [name = '', namespace] = id.split(':').toReversed()
    return defineTool({ name, namespace, tags: id.includes('read') ? ['read'] : [] })
  })
const tools = toolsOf('files:read', 'files:write', 'web:search')
/** What is found, as `code path: text`. */
const found = (options: Partial<LintOptions>) =>
  lint({ tools, ...options }).map(({ code, path, text }) => `${code} ${path}: ${text}`)

describe('rules about runs', () => {
  const make = (id: string, more: object = {}) => {
    const [namespace, name = ''] = id.split(':')
    return defineTool({ namespace, name, ...more })
  }
  const policy = (label: string) => ({ deny: [{ match: 'files:write', when: `'${label}' in run.labels` }] })

  it('are linted, with the labels of the configuration', () => {
    const labels = { private: ['files:read'] }
    assert.deepEqual(found({ policy: policy('private'), labels }), [])
    assert.deepEqual(found({ policy: policy('privat'), labels }), [
      'label_unknown policy[0].deny[0]: no output has the label "privat"; did you mean "private"?',
    ])
    assert.deepEqual(
      found({ labels: { private: ['files:raed'] } })[0]?.slice(0, 38),
      'selector_unmatched labels.private[0]: ',
    )
    assert.deepEqual(found({ labels: { 'No Label': [] } })[0]?.slice(0, 30), 'config_invalid labels.No Label')
  })

  it('name a tool that there is not', () => {
    const input = "!run.called('fraud:chek')"
    const error = { code: 'selector_invalid', message: /"fraud:chek" names no tool; the nearest are "fraud:check"/ }
    assert.throws(() => createGate({ tools: [make('fraud:check')], policy: { deny: [{ match: '*', input }] } }), error)
  })

  it('are refused by a gate for a label that is near a known one, and warned of for any other', () => {
    const warnings: string[] = []
    const onWarning = ({ code }: { code: string }) => void warnings.push(code)
    const options = { tools, labels: { private: ['files:read'] }, onWarning }
    assert.throws(() => createGate({ ...options, policy: policy('untrustd') }), {
      code: 'config_invalid',
      message: /no output has the label "untrustd"; did you mean "untrusted"\?/,
    })
    const gate = createGate({ ...options, policy: policy('elsewhere') })
    assert.deepEqual(warnings, ['label_unknown'])
    assert.deepEqual(
      gate.lint().map(({ code }) => code),
      ['label_unknown'],
    )
    assert.throws(() => gate.setPolicy(policy('privat')), /did you mean "private"/)
    gate.setPolicy(policy('private'))
    assert.deepEqual(gate.lint(), [])
  })
})

describe('lint', () => {
  it('finds nothing in a correct configuration', () => {
    const groups = { web: { tools: ['web:*'] }, all: { tools: ['*'], dependsOn: ['web'] } }
    const policy = { allow: ['group:all'], deny: [{ match: 'files:write', when: "'guest' in caller.roles" }] }
    assert.deepEqual(found({ groups, policy: [policy, { decide: () => 'deny' }] }), [])
    assert.deepEqual(lint({ tools: [] }), [])
  })

  const rows: readonly (readonly [what: string, options: Partial<LintOptions>, expected: readonly string[]])[] = [
    [
      'a clause that names no tool',
      { policy: { ask: ['mail:*'] } },
      ['selector_unmatched policy[0].ask[0]: "mail:*" names no tool'],
    ],
    [
      'a misspelt name, with the nearest',
      { policy: { ask: ['files:raed'] } },
      [
        'selector_unmatched policy[0].ask[0]: "files:raed" names no tool; the nearest are "files:read", "files:write", "web:search"',
      ],
    ],
    [
      'a member of a group that names no tool',
      { groups: { web: { tools: ['web:*', 'web:fetch'] } } },
      [
        'selector_unmatched groups.web.tools[1]: "web:fetch" names no tool; the nearest are "web:search", "files:read", "files:write"',
      ],
    ],
    [
      'tools that a clause denies to everybody',
      { policy: { name: 'baseline', deny: [{ match: 'files:*', message: 'No files.' }] } },
      [
        'tool_unreachable policy[0].deny[0]: nobody can see "files:read", "files:write": policy "baseline" denies files:* to everybody',
      ],
    ],
    [
      'tools that an allowlist leaves out',
      { policy: [{}, { allow: ['files:*'] }] },
      ['tool_unreachable policy[1].allow: nobody can see "web:search": policy "policy 2" allows other tools only'],
    ],
    [
      'tools that lack a required tag',
      { policy: { requireTags: ['read'] } },
      [
        'tool_unreachable policy[0].requireTags[0]: nobody can see "files:write", "web:search": policy "policy 1" requires the tag read',
      ],
    ],
    [
      'an allowlist that only an untrusted hint could satisfy',
      {
        tools: [defineTool({ name: 'a', annotations: { readOnlyHint: true }, hintsTrusted: false })],
        policy: { allow: ['hint:read-only'] },
      },
      ['tool_unreachable policy[0].allow: nobody can see "a": policy "policy 1" allows other tools only'],
    ],
    [
      'a condition that may let somebody see it',
      { policy: { deny: [{ match: '*', unless: "'a' in caller.roles" }] } },
      [],
    ],
    ['a denial that depends on the input', { policy: { deny: [{ match: '*', input: 'has(input.x)' }] } }, []],
    [
      'a group that there is not, in a policy',
      { groups: { web: { tools: ['*'] } }, policy: { deny: [{ match: ['group:wbe', 'web:x*'] }] } },
      [
        'group_unknown policy[0].deny[0]: "group:wbe" names no group; the groups are web',
        'selector_unmatched policy[0].deny[0]: "web:x*" names no tool',
      ],
    ],
    [
      'a group that there is not, in another',
      { groups: { web: { tools: ['*'], dependsOn: ['net'] } } },
      ['group_unknown groups.web.dependsOn[0]: no group is named "net"; the groups are web'],
    ],
    [
      'each cycle of groups once',
      {
        groups: {
          c: { tools: ['*'], dependsOn: ['a'] },
          a: { tools: ['*'], dependsOn: ['b'] },
          b: { tools: ['*'], dependsOn: ['c', 'b'] },
        },
      },
      ['group_cycle groups.a.dependsOn: a cycle: a → b → c → a', 'group_cycle groups.b.dependsOn: a cycle: b → b'],
    ],
    [
      'everything at once, where a gate stops at the first',
      {
        groups: { a: { tools: ['x:'] } },
        policy: [{ deny: ['a b'] }, { ask: [{ match: '*', when: 'caller.rolez' }] }, { ask: ['no:*'] }],
      },
      [
        'selector_invalid groups.a.tools[0]: selector "x:": has nothing on one side of its ":"',
        'selector_invalid policy[0].deny[0].match: selector "a b": must not hold spaces',
        'condition_invalid policy[1].ask[0].when: No such key: rolez at character 8 of "caller.rolez"',
        'selector_unmatched policy[2].ask[0]: "no:*" names no tool',
      ],
    ],
    [
      'limits and caps that name nothing, and those that cannot be read',
      {
        limits: ['files:raed:1/60', 'x', 'category:mail:1/60'],
        concurrency: 'mail:*:1',
      },
      [
        'config_invalid limits[1]: "x" must read selector:uses/seconds, as "web_search:10/60"',
        'selector_unmatched limits[0]: "files:raed" names no tool; the nearest are "files:read", "files:write", "web:search"',
        'selector_unmatched limits[2]: no tool has the category "mail"',
        'selector_unmatched concurrency[0]: "mail:*" names no tool',
      ],
    ],
    ['limits that are no list', { limits: 7 as unknown as string }, ['config_invalid limits: must be a list']],
    [
      'names that look alike',
      { tools: toolsOf('files:read', 'files:re\u0430d', 'files:list1', 'files:listl') },
      [
        'name_confusable tools: "files:list1" and "files:listl" look alike',
        'name_confusable tools: "files:read" and "files:re\u0430d" (with U+0430) look alike',
        'name_confusable tools: "files:re\u0430d" (with U+0430) mixes Latin and Cyrillic letters',
      ],
    ],
  ]
  for (const [what, options, expected] of rows) {
    it(`${expected.length > 0 ? 'finds' : 'minds no'} ${what}`, () => assert.deepEqual(found(options), expected))
  }

  it('names every tool that a warning is about, in words the first five', () => {
    const many = toolsOf(...Array.from({ length: 8 }, (_, i) => `t${i}`))
    const [warning] = lint({ tools: many, policy: { allow: [] } })
    assert.equal(warning?.tools?.length, 8)
    assert.match(
      warning?.text ?? '',
      /"t0", "t1", "t2", "t3", "t4" and 3 more: policy "policy 1" allows other tools only$/,
    )
  })

  it('reads policies that are no policies', () => {
    const policy = [null, 7, { deny: 'x' }, { deny: [null] }] as unknown as []
    assert.deepEqual(
      lint({ tools, policy }).map(({ path }) => path),
      ['policy[0]', 'policy[1]', 'policy[2].deny', 'policy[3].deny[0]'],
    )
  })
})

describe('gate.lint', () => {
  it('finds the same on a gate, in today’s policy and its forks', () => {
    const groups = { mail: { tools: ['mail:*'] } }
    const gate = createGate({ tools, groups, policy: { ask: ['files:*'] } })
    const codes = (of: typeof gate) => of.lint().map(({ code, path }) => `${code} ${path}`)
    assert.deepEqual(codes(gate), ['selector_unmatched groups.mail.tools[0]'])
    assert.deepEqual(codes(gate.fork({ policy: { deny: ['web:*'] } })), [
      'selector_unmatched groups.mail.tools[0]',
      'tool_unreachable policy[1].deny[0]',
    ])
    gate.setPolicy({ deny: ['tag:payments'], requireTags: ['read'] })
    assert.deepEqual(codes(gate), [
      'selector_unmatched policy[0].deny[0]',
      'selector_unmatched groups.mail.tools[0]',
      'tool_unreachable policy[0].requireTags[0]',
    ])
  })
})

describe('lint of resources and prompts', () => {
  const items = [
    definePrompt({ name: 'ask', namespace: 'git' }),
    defineResource({ uri: 'db:a', namespace: 'db' }),
    defineResource({ uri: 'db:b', namespace: 'db' }),
  ]
  const foundBy = (policy?: Policies) =>
    lint({ tools: [defineTool({ name: 'a' }), ...items], ...(policy && { policy }) }).map(
      ({ code, path, text }) => `${code} ${path}: ${text}`,
    )

  it('names each policy that allows none of a kind that a server offers', () => {
    const policy = [{ name: 'first', allow: ['*', 'prompt:git:*'] }, { allow: ['*', 'resource:*:*', 'prompt:*:*'] }, {}]
    const none = 'an allow must name them, as in'
    assert.deepEqual(foundBy(policy), [
      `kind_not_allowed policy[2].allow: nobody can see the 1 prompts of git: policy "policy 3" allows none of them; ${none} "prompt:git:*"`,
      `kind_not_allowed policy[0].allow: nobody can see the 2 resources of db: policy "first" allows none of them; ${none} "resource:db:*"`,
      `kind_not_allowed policy[2].allow: nobody can see the 2 resources of db: policy "policy 3" allows none of them; ${none} "resource:db:*"`,
    ])
    assert.match(
      foundBy()[0] ?? '',
      /^kind_not_allowed policy: nobody can see the 1 prompts of git: there is no policy/,
    )
    assert.deepEqual(foundBy({ allow: ['*', 'resource:db:db:a', 'prompt:*:*'] }), [])
    assert.deepEqual(foundBy({ kinds: ['prompt', 'resource'], decide: () => 'allow' }), [])
  })

  it('finds selectors that name no server, no prompt and no resource', () => {
    const policy = {
      allow: ['*', 'resource:*:*', 'prompt:*:*'],
      deny: ['server:gti', 'prompt:git:aks', 'resource:db:db:x*', 'server:db'],
    }
    assert.deepEqual(foundBy(policy), [
      'selector_unmatched policy[0].deny[0]: "server:gti" names no server; did you mean "git"?',
      'selector_unmatched policy[0].deny[1]: "prompt:git:aks" names no prompt; did you mean "prompt:git:ask"?',
      'selector_unmatched policy[0].deny[2]: "resource:db:db:x*" names no resource; did you mean "resource:db:db:a"?',
    ])
  })

  it('is an error of a gate with fixed tools where a name has no star', () => {
    const gateWith = (deny: string) => createGate({ tools: items, policy: { deny: [deny] }, onWarning: () => {} })
    for (const wrong of ['server:gti', 'prompt:git:aks', 'resource:db:db:x'])
      assert.throws(() => gateWith(wrong), { code: 'selector_invalid' }, wrong)
    for (const right of ['server:git', 'prompt:git:ask', 'resource:db:db:x*', 'resource:db:db:a'])
      assert.ok(gateWith(right), right)
  })

  it('finds no unknown URI of a server that makes resources on demand', () => {
    const source = { name: 'db', namespaces: ['db'], tools: () => [], unlisted: () => undefined }
    const deny = ['resource:db:db:x', 'resource:bd:*']
    const told: string[] = []
    createGate({ sources: [source], policy: { deny }, onWarning: ({ text }) => told.push(text) })
    assert.deepEqual(told, ['"resource:bd:*" names no server; did you mean "db"?'])
  })

  it('finds the URIs and templates that no server can have', () => {
    const template = defineTemplate({ uriTemplate: 'file:///listed/{name}', namespace: 'files' })
    const odd = defineResource({ uri: 'FILE:///odd', namespace: 'files' })
    const source = {
      name: 'files',
      namespaces: ['files'],
      tools: () => [template, odd],
      subscribe: () => () => {},
      unlisted: () => undefined,
    }
    const textsOf = (uris: readonly string[]) => {
      const deny = uris.map((uri) => `resource:files:${uri}`)
      const told: string[] = []
      const gate = createGate({ sources: [source], policy: { deny }, onWarning: ({ text }) => told.push(text) })
      const linted = gate.lint().filter(({ code }) => code === 'selector_unmatched')
      assert.deepEqual(
        linted.map(({ text }) => text),
        told,
      )
      return told
    }
    const templates = ['file:///work/{name}', 'file:///work/{+path}*', 'file:///list/{name}']
    assert.deepEqual(
      textsOf(templates),
      templates.map((uri) => `"resource:files:${uri}" names no template: its server does not list it`),
    )
    const unusual = [
      'FILE:///secret/*',
      'file:///a/../b',
      'file:///a/../*',
      'file://localhost/a',
      'https://example.com',
      'file:///a/',
      'file:///%2Fa/*',
    ]
    assert.deepEqual(
      textsOf(unusual),
      unusual.map(
        (uri) => `"resource:files:${uri}" names no resource: it is not in normal form, and its server does not list it`,
      ),
    )
    const fine = [
      '*',
      '*secret*',
      'file:*',
      'file:///*',
      'file:///a',
      'file:///a/*.md',
      'https://*.example.com/*',
      'https://EXAMPLE.com/*',
    ]
    assert.deepEqual(textsOf([...fine, 'https://example.com/a?x=*', 'https:*', 'urn:isbn:*', '*://x/*']), [])
    assert.deepEqual(textsOf(['file:///listed/{name}', 'file:///listed/*', 'FILE:///odd', 'FILE:*']), [])
  })
})

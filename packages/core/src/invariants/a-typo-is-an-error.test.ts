import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limitsFromEnv } from '../call/limits.ts'
import { ConfigError } from '@toolgate/values'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { policyFromEnv } from '../policy/environment.ts'
import type { LintWarning } from '../policy/lint.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool } from '../tools/tool.ts'

const tools = [
  defineTool({ name: 'search', tags: ['read'], category: 'lookup', execute: () => 'ran' }),
  defineTool({ namespace: 'files', name: 'remove', tags: ['danger'], execute: () => 'ran' }),
]
const groups = { web: { tools: ['search'] }, empty: { tools: [] } }

/** A gate over fixed tools, and the warnings that it gave. */
function open(options: GateOptions) {
  const told: LintWarning[] = []
  const gate = createGate({ tools, groups, onWarning: (warning) => told.push(warning), ...options })
  return { gate, told }
}

/** A source that lists its tools later. */
function liveSource(options: Partial<Source> = {}) {
  const listeners = new Set<() => void>()
  let listed: typeof tools = []
  return {
    source: {
      name: 'live',
      tools: () => listed,
      subscribe(listener: () => void) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      ...options,
    } satisfies Source,
    list(next: typeof tools) {
      listed = next
      for (const listener of listeners) listener()
    },
  }
}

const NEAREST = 'the nearest are "search", "files:remove"'

describe('a name that nothing has, where the tools are fixed', () => {
  const errors: readonly (readonly [what: string, options: GateOptions, path: string, problem: string])[] = [
    ['a clause', { policy: { deny: ['serach'] } }, 'policy[0].deny[0]', `"serach" names no tool; ${NEAREST}`],
    ['a limit', { limits: 'serach:1/60' }, 'limits[0]', `"serach" names no tool; ${NEAREST}`],
    [
      'a limit as an object',
      { limits: [{ match: 'serach', max: 1, windowMs: 1 }] },
      'limits[0]',
      `"serach" names no tool; ${NEAREST}`,
    ],
    ['a concurrency cap', { concurrency: 'serach:1' }, 'concurrency[0]', `"serach" names no tool; ${NEAREST}`],
    [
      'a member of a group',
      { groups: { a: { tools: ['serach'] } } },
      'groups.a.tools[0]',
      `"serach" names no tool; ${NEAREST}`,
    ],
    [
      'a tool of an app',
      { apps: { desk: { tools: ['serach'] } } },
      'apps.desk.tools[0]',
      `"serach" names no tool; ${NEAREST}`,
    ],
    [
      'a clause of an app',
      { apps: { desk: { tools: ['search'], policy: { deny: ['serach'] } } } },
      'apps.desk.policy[0].deny[0]',
      `"serach" names no tool; ${NEAREST}`,
    ],
    [
      'a tag of a clause',
      { policy: { deny: ['tag:dangr'] } },
      'policy[0].deny[0]',
      'no tool has the tag "dangr"; did you mean "danger"?',
    ],
    [
      'a required tag',
      { policy: { requireTags: ['raed'] } },
      'policy[0].requireTags[0]',
      'no tool has the tag "raed"; did you mean "read"?',
    ],
    [
      'a category of a limit',
      { limits: 'category:lokup:1/60' },
      'limits[0]',
      'no tool has the category "lokup"; did you mean "lookup"?',
    ],
  ]
  for (const [what, options, path, problem] of errors) {
    it(`is an error in ${what}`, () => assert.throws(() => open(options), { code: 'selector_invalid', path, problem }))
  }

  it('is a warning in a halt, which must not fail, and an error in a later policy and a fork', async () => {
    const { gate, told } = open({})
    await gate.halt({ tool: 'serach', reason: 'x' })
    assert.deepEqual(
      told.map(({ path, text }) => [path, /"(\w+)"/.exec(text)?.[1]]),
      [['halt.tool', 'serach']],
    )
    assert.throws(() => gate.setPolicy({ deny: ['serach'] }), { path: 'policy[0].deny[0]' })
    assert.throws(() => gate.fork({ policy: { deny: ['tag:dangr'] } }), { path: 'policy[0].deny[0]' })
  })

  it('is reported with every other wrong name', () => {
    const options = { policy: { deny: ['serach', 'tag:dangr'] }, limits: ['removed:1/60'], concurrency: 'files:rm:1' }
    assert.throws(
      () => open(options),
      (error) =>
        error instanceof ConfigError &&
        error.path === 'policy[0].deny[0]' &&
        error.message ===
          [
            `policy[0].deny[0]: "serach" names no tool; ${NEAREST}`,
            'policy[0].deny[1]: no tool has the tag "dangr"; did you mean "danger"?',
            'limits[0]: "removed" names no tool; the nearest are "search", "files:remove"',
            'concurrency[0]: "files:rm" names no tool; the nearest are "files:remove", "search"',
          ].join('\n'),
    )
  })

  it('is a warning where it can be meant for another catalog: a glob, a tag far from any, a group without tools', () => {
    const { gate, told } = open({
      policy: { deny: ['mail:*', 'tag:payments', 'group:empty'], requireTags: ['reviewed'] },
      limits: 'tag:billing:1/60',
      concurrency: 'browser:*:2',
    })
    const paths = [
      'policy[0].deny[0]',
      'policy[0].deny[1]',
      'policy[0].deny[2]',
      'policy[0].requireTags[0]',
      'limits[0]',
      'concurrency[0]',
    ]
    assert.deepEqual(
      told.map(({ code, path }) => [code, path]),
      paths.map((path) => ['selector_unmatched', path]),
    )
    const linted = gate.lint().filter(({ code }) => code === 'selector_unmatched')
    assert.deepEqual(linted, told)
  })

  it('is no warning where nothing can be misspelt: every tool, and hints', () => {
    assert.deepEqual(open({ tools: [], groups: {}, limits: '*:1/60', policy: { deny: ['hint:destructive'] } }).told, [])
  })

  it('is a warning of the process unless the host takes it, once for each', async () => {
    const seen: string[] = []
    const listen = (warning: Error) => {
      if (warning.message.includes('once-for-each')) seen.push(warning.message)
    }
    process.on('warning', listen)
    for (let i = 0; i < 3; i++) createGate({ tools, policy: { deny: ['once-for-each:*'] } })
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listen)
    assert.deepEqual(seen, ['policy[0].deny[0]: "once-for-each:*" names no tool'])
  })
})

describe('a name that nothing has, where tools can still come', () => {
  const options = { policy: { deny: ['serach', 'tag:dangr'] }, limits: 'fiels:*:1/60', concurrency: 'serach:1' }
  const PATHS = ['policy[0].deny[0]', 'policy[0].deny[1]', 'limits[0]', 'concurrency[0]']
  const pathsOf = (warnings: readonly LintWarning[]) => warnings.map(({ path }) => path)
  const unmatched = (gate: ReturnType<typeof createGate>) =>
    gate.lint().filter(({ code }) => code === 'selector_unmatched')

  it('is a warning as soon as the sources have listed their tools, once', () => {
    const { source, list } = liveSource()
    const { gate, told } = open({ tools: [], groups: {}, sources: [source], ...options })
    assert.deepEqual(pathsOf(told), [])
    list(tools)
    assert.deepEqual(pathsOf(told), PATHS)
    assert.equal(told[0]?.text, `"serach" names no tool; ${NEAREST}`)
    list([])
    list(tools)
    assert.equal(told.length, PATHS.length)
    assert.deepEqual(pathsOf(unmatched(gate)), PATHS)
  })

  it('leaves the lint when a tool of that name comes', () => {
    const { source, list } = liveSource()
    const { gate } = open({ tools: [], groups: {}, sources: [source], policy: { deny: ['mail'] } })
    list(tools)
    assert.deepEqual(pathsOf(unmatched(gate)), ['policy[0].deny[0]'])
    list([...tools, defineTool({ name: 'mail' })])
    assert.deepEqual(unmatched(gate), [])
  })

  it('is a warning at once in a later policy, a fork, a step and a halt', async () => {
    const { source, list } = liveSource()
    const { gate, told } = open({ tools: [], groups: {}, sources: [source] })
    list(tools)
    gate.setPolicy({ deny: ['later'] })
    gate.fork({ policy: { deny: ['forked'] } })
    const view = await gate.view({})
    view.narrow({ policy: { deny: ['stepped'] } })
    await gate.halt({ tool: 'halted', reason: 'x' })
    assert.deepEqual(
      told.map(({ path, text }) => [path, /"(\w+)"/.exec(text)?.[1]]),
      [
        ['policy[0].deny[0]', 'later'],
        ['policy[0].deny[0]', 'forked'],
        ['policy[0].deny[0]', 'stepped'],
        ['halt.tool', 'halted'],
      ],
    )
    assert.deepEqual(pathsOf(unmatched(gate)), ['policy[0].deny[0]', 'halts[0].tool'])
  })

  it('waits for the sources that may have it, and for no others', () => {
    let isListed = false
    const slow = liveSource({ name: 'slow', namespaces: ['slow'], isListed: () => isListed })
    const { told } = open({ sources: [slow.source], policy: { deny: ['serach', 'slow:tool', 'slow:*', 'tag:far'] } })
    assert.deepEqual(pathsOf(told), ['policy[0].deny[0]'])
    isListed = true
    slow.list([])
    assert.deepEqual(pathsOf(told).length, 4)
  })

  it('is judged too where a source tells of a change while it is subscribed to', () => {
    const source: Source = {
      name: 'eager',
      tools: () => tools,
      subscribe(listener) {
        listener()
        return () => {}
      },
    }
    const { told } = open({ tools: [], groups: {}, sources: [source], policy: { deny: ['serach'] } })
    assert.deepEqual(pathsOf(told), ['policy[0].deny[0]'])
  })

  it('waits for a group that is loaded at its first use', async () => {
    const { gate, told } = open({
      groups: { lazy: { tools: ['lazy:*'], load: () => [defineTool({ namespace: 'lazy', name: 'there' })] } },
      policy: { deny: ['lazy:there', 'lazy:other', 'serach'] },
    })
    assert.deepEqual(pathsOf(told), ['policy[0].deny[2]'])
    await gate.loads.load('lazy')
    assert.deepEqual(pathsOf(told), ['policy[0].deny[2]', 'policy[0].deny[1]'])
  })
})

describe('a name in the environment', () => {
  it('has the word before ":" in small letters', () => {
    assert.throws(() => policyFromEnv({ TOOL_DENYLIST: 'search,GROUP:WEB' }, { groups }), {
      path: 'TOOL_DENYLIST[1]',
      message: /selector "GROUP:WEB": .*"group:web"/,
    })
    assert.throws(() => createGate({ tools, policy: { deny: ['Tag:read'] } }), /"tag:read"/)
    assert.throws(() => defineTool({ namespace: 'GROUP', name: 'web' }), /reserved for selectors/)
  })

  it('names the nearest group', () => {
    assert.throws(() => policyFromEnv({ TOOL_DENYLIST: 'group:WEB' }, { groups }), /did you mean "group:web"\?/)
  })

  const mixed = ['a:1/60;b:1/60', 'a:1/60|b:1/60', 'a:1/60/b:1/60', '"a":1/60', "'a':1/60"]
  for (const text of mixed) {
    it(`is not ${text}: entries have commas between them`, () => {
      assert.throws(() => limitsFromEnv({ TOOL_RATE_LIMITS: text }), { path: 'TOOL_RATE_LIMITS[0]' })
      assert.throws(() => createGate({ limits: text }), { path: 'limits[0]' })
    })
  }

  it('is not two names with anything but a comma between them', () => {
    for (const text of ['a;b', 'a|b', '["a"]', '"a"'])
      assert.throws(() => policyFromEnv({ TOOL_DENYLIST: text }), { path: 'TOOL_DENYLIST[0]' }, text)
    assert.throws(() => createGate({ concurrency: 'a:1;b:1' }), { path: 'concurrency[0]' })
  })

  it('may hold what names of tools hold', () => {
    const env = { TOOL_DENYLIST: 'a.b-c_d/e:f, отчёт:*, @x/y:*' }
    assert.equal(policyFromEnv(env)[0]?.deny?.length, 3)
  })
})

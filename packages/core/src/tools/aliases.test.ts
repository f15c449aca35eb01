import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { limitsFromEnv } from '../call/limits.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { lint } from '../gate/lint.ts'
import { policyFromEnv } from '../policy/environment.ts'
import type { LintWarning } from '../policy/lint.ts'
import type { Policy } from '../policy/policy.ts'
import type { Source } from './catalog.ts'
import { defineTool } from './tool.ts'
import { runs } from '../../../testing/src/runs.ts'

const toolsOf = (...ids: readonly string[]) =>
  ids.map((id) => {
    const [name = '', namespace] = id.split(':').toReversed()
    return defineTool({ name, namespace, execute: () => `ran ${id}` })
  })
const tools = toolsOf('bash', 'apply_patch', 'files:read')
const aliases = { exec: 'bash', 'apply-patch': 'apply_patch', 'fs:cat': 'files:read' }
const open = (options: GateOptions = {}) => createGate({ tools, aliases, ...options })
const idsOf = async (options: GateOptions) => (await open(options).view({ user: 'vera' })).ids

/** Sources whose tools can change, and the warnings that a gate over them gave. */
function live(ids: readonly string[], options: GateOptions = {}) {
  const told: LintWarning[] = []
  const listeners = new Set<() => void>()
  let listed = toolsOf(...ids)
  const source: Source = {
    name: 'live',
    tools: () => listed,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  const gate = createGate({ sources: [source], aliases, onWarning: (warning) => told.push(warning), ...options })
  const list = (...next: readonly string[]) => {
    listed = toolsOf(...next)
    for (const listener of listeners) listener()
  }
  return { gate, told, list }
}

describe('aliases', () => {
  it('name their tool in policies', async () => {
    assert.deepEqual(await idsOf({ policy: { deny: ['exec', { match: ['apply-patch'] }] } }), ['files:read'])
    assert.deepEqual(await idsOf({ policy: { allow: ['exec', 'fs:cat'] } }), ['bash', 'files:read'])
    const view = await open({ policy: { ask: ['exec'], deny: [{ match: 'fs:cat', input: 'true' }] } }).view({})
    assert.equal((await view.call({ tool: 'bash' })).status, 'waiting')
    assert.equal((await view.call({ tool: 'files:read' })).status, 'refused')
  })

  it('name their tool in groups, apps, limits, caps and halts', async () => {
    const groups = { shell: { tools: ['exec'] } }
    assert.deepEqual(await idsOf({ groups, policy: { deny: ['group:shell'] } }), ['apply_patch', 'files:read'])
    const gate = open({ apps: { desk: { tools: ['fs:cat'] } }, limits: 'exec:1/60', concurrency: 'apply-patch:1' })
    assert.deepEqual((await gate.view({}, { app: 'desk' })).ids, ['files:read'])
    const view = await gate.view({})
    assert.equal((await view.call({ tool: 'bash' })).status, 'done')
    assert.match((await view.call({ tool: 'bash' })).text, /rate limited \(1\/60\)/)
    await gate.halt({ tool: 'fs:cat', reason: 'it leaks' })
    assert.match((await view.call({ tool: 'files:read' })).text, /it leaks/)
  })

  it('share the bucket of a limit that is written with the id', async () => {
    const gate = open({ limits: ['exec:1/60', 'bash:2/60'] })
    const view = await gate.view({})
    assert.equal((await view.call({ tool: 'bash' })).status, 'done')
    assert.match((await view.call({ tool: 'bash' })).text, /rate limited \(1\/60\)/)
  })

  it('name their tool in the environment', async () => {
    const env = { TOOL_DENYLIST: 'exec', TOOL_RATE_LIMITS: 'fs:cat:1/60' }
    const gate = open({ policy: policyFromEnv(env), limits: limitsFromEnv(env) })
    const view = await gate.view({})
    assert.deepEqual(view.ids, ['apply_patch', 'files:read'])
    await view.call({ tool: 'files:read' })
    assert.match((await view.call({ tool: 'files:read' })).text, /rate limited/)
  })

  it('name their tool in a later policy, a fork and a step', async () => {
    const gate = open()
    assert.equal((await gate.fork({ policy: { deny: ['exec'] } }).view({})).has('bash'), false)
    assert.equal((await gate.view({})).narrow({ policy: { deny: ['exec'] } }).has('bash'), false)
    gate.setPolicy({ deny: ['exec'] })
    assert.equal((await gate.view({})).has('bash'), false)
  })

  it('are never callable and never listed', async () => {
    const gate = open()
    const view = await gate.view({ user: 'vera' })
    const byAlias = await view.call({ tool: 'exec' })
    assert.equal(byAlias.status, 'refused')
    assert.match(byAlias.text, /^Tool "exec" is not available\./)
    assert.deepEqual([view.has('exec'), gate.catalog.get('exec'), view.search('exec')], [false, undefined, []])
    await assert.rejects(gate.view({}, { activeTools: ['exec'] }), { code: 'tool_unknown' })
  })

  it('decide as the ids that they stand for', async () => {
    const names = Object.entries({ ...aliases, wc: 'count' })
    const all = toolsOf(...names.map(([, id]) => id), 'other')
    const name = fc.oneof(fc.constantFrom(...names.map(([alias]) => alias)), fc.constantFrom('other', 'bash', 'count'))
    const clauses = fc.array(name, { maxLength: 3 })
    const policy = fc.record(
      { allow: fc.array(name, { minLength: 1, maxLength: 3 }), deny: clauses, ask: clauses },
      { requiredKeys: [] },
    )
    const byAlias = new Map(names)
    const withIds = ({ allow, deny, ask }: Policy): Policy => {
      const toIds = (list: Policy['deny'] = []) => list.map((text) => byAlias.get(text as string) ?? (text as string))
      return { ...(allow ? { allow: toIds(allow) } : {}), deny: toIds(deny), ask: toIds(ask) }
    }
    await fc.assert(
      fc.asyncProperty(policy, async (written) => {
        const decide = async (used: Policy) => {
          const view = await createGate({ tools: all, aliases: new Map(names), policy: used }).view({})
          return all.map(({ id }) => [id, view.has(id), view.explain(id).outcome])
        }
        assert.deepEqual(await decide(written), await decide(withIds(written)))
      }),
      runs(200, 200),
    )
  })

  const refused: readonly (readonly [what: string, aliases: unknown, path: string, problem: RegExp])[] = [
    ['a tool’s own id', { bash: 'files:read' }, 'aliases.bash', /"bash" is a tool itself/],
    ['an alias of an alias', { sh: 'exec', exec: 'bash' }, 'aliases.sh', /"exec" is an alias itself/],
    ['an alias of itself', { exec: 'exec' }, 'aliases.exec', /"exec" is an alias itself/],
    ['an unknown tool', { exec: 'bsh' }, 'aliases.exec', /"bsh" names no tool; the nearest are "bash"/],
    ['a name that is a selector', { 'tag:x': 'bash' }, 'aliases.tag:x', /must be a plain name/],
    ['a glob as its name', { 'ex*': 'bash' }, 'aliases.ex*', /must be a plain name/],
    ['a glob as its tool', { exec: 'ba*' }, 'aliases.exec', /must name one tool/],
    ['several tools', { exec: ['bash', 'files:read'] }, 'aliases.exec', /must name one tool/],
    ['what is no text', { exec: 7 }, 'aliases.exec', /must name one tool/],
    ['what is no object', ['exec'], 'aliases', /must be an object/],
  ]
  for (const [what, wrong, path, problem] of refused) {
    it(`refuse ${what}`, () => {
      const options = { tools, aliases: wrong } as unknown as GateOptions
      assert.throws(() => createGate(options), { name: 'ConfigError', path, problem })
    })
  }

  describe('where tools can still come', () => {
    it('warn of an unknown tool, once, and no more in lint when it comes', () => {
      const { gate, told, list } = live(['apply_patch', 'files:read'])
      list('apply_patch', 'files:read', 'other')
      const warning = { code: 'selector_unmatched', path: 'aliases.exec' }
      assert.deepEqual(
        told.map(({ code, path }) => ({ code, path })),
        [warning],
      )
      assert.deepEqual(
        gate.lint().map(({ code, path }) => ({ code, path })),
        [warning],
      )
      list('apply_patch', 'files:read', 'bash')
      assert.deepEqual(gate.lint(), [])
    })

    it('warn of a tool that has the name of an alias', () => {
      const { gate, told, list } = live(['bash', 'apply_patch', 'files:read'])
      list('bash', 'apply_patch', 'files:read', 'exec')
      assert.deepEqual(told, [{ code: 'alias_taken', path: 'aliases.exec', text: told[0]?.text }])
      assert.deepEqual(gate.lint(), told)
    })

    it('deny both where a tool takes the name of an alias, and allow the tool that was meant', async () => {
      const both = ['bash', 'apply_patch', 'files:read', 'exec']
      const idsUnder = async (policy: Policy) => (await live(both, { policy }).gate.view({})).ids
      assert.deepEqual(await idsUnder({ deny: ['exec'] }), ['apply_patch', 'files:read'])
      assert.deepEqual(await idsUnder({ allow: ['exec'] }), ['bash'])
    })
  })
})

describe('lint of names', () => {
  const found = (ids: readonly string[], names: Readonly<Record<string, string>> = {}) =>
    lint({ tools: toolsOf(...ids), aliases: names }).map(({ code, text }) => `${code}: ${text}`)
  const alike = (names: string) => `name_confusable: ${names} differ in letter case, "-" and "_" alone`

  it('finds ids that differ in letter case or separator alone', () => {
    assert.deepEqual(found(['files:read-file', 'files:read_file', 'Files:readfile']), [
      alike('"files:read-file" and "files:read_file"'),
    ])
    assert.deepEqual(found(['Search', 'search']), [alike('"Search" and "search"')])
  })

  it('finds two tools of one alias, and an alias that is nearly another tool', () => {
    assert.deepEqual(found(['bash', 'sh'], { Exec: 'bash', exec: 'sh' }), [alike('"Exec" and "exec"')])
    assert.deepEqual(found(['apply_patch', 'patch'], { 'apply-patch': 'patch' }), [
      alike('"apply-patch" and "apply_patch"'),
    ])
  })

  it('finds nothing where an alias is another spelling of its own tool', () => {
    assert.deepEqual(found(['apply_patch'], { 'apply-patch': 'apply_patch', Apply_Patch: 'apply_patch' }), [])
  })

  it('finds aliases that are tools, and those of unknown tools', () => {
    assert.deepEqual(found(['bash', 'sh'], { bash: 'sh', x: 'y' }), [
      'selector_unmatched: "y" names no tool; the nearest are "sh", "bash"',
      'alias_taken: "bash" is a tool itself; an alias needs a name of its own',
    ])
  })
})

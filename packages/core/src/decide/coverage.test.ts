import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { memoryAudit } from '../audit/memory.ts'
import { createGate, type Gate } from '../gate/gate.ts'
import { clauseText } from '../policy/clause-ref.ts'
import type { Policy } from '../policy/policy.ts'
import { countsOf } from '../gate/view-of.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { defineTool } from '../tools/tool.ts'
import { unjudgedId } from './coverage.ts'

const tools = ['mail', 'read', 'write'].map((name) => defineTool({ name, execute: () => name }))
const TEAM: Policy = {
  name: 'team',
  allow: ['read', { match: '*', when: "'admin' in caller.roles" }, { match: 'mail', input: "input.to == 'x'" }],
  deny: [
    { match: 'write', unless: "'admin' in caller.roles" },
    { match: 'mail', input: "input.to == 'y'" },
  ],
  ask: [{ match: 'read', mode: 'shadow' }],
}
const [vera, ada] = [
  { user: 'vera', roles: ['viewer'] },
  { user: 'ada', roles: ['admin'] },
]

function hitsOf(gate: Pick<Gate, 'coverage'>) {
  return Object.fromEntries(gate.coverage().flatMap(({ ref, hits }) => (hits > 0 ? [[clauseText(ref), hits]] : [])))
}

describe('gate.coverage', () => {
  const rows: readonly (readonly [shows: string, caller: object, tool: string, input: object, hits: object])[] = [
    ['the clause that allows, and a shadow that holds', vera, 'read', {}, { 'team#allow[0]': 1, 'team#ask[0]': 1 }],
    ['the clause that denies', vera, 'write', {}, { 'team#deny[0]': 1 }],
    ['one with a condition about the caller', ada, 'write', {}, { 'team#allow[1]': 1 }],
    ['of an allow list the first', ada, 'read', {}, { 'team#allow[0]': 1, 'team#ask[0]': 1 }],
    ['one about the input', vera, 'mail', { to: 'x' }, { 'team#allow[2]': 1 }],
    ['the first that allows, and all that deny', ada, 'mail', { to: 'y' }, { 'team#allow[1]': 1, 'team#deny[1]': 1 }],
    ['none where none holds', vera, 'mail', { to: 'z' }, {}],
    ['none for an unknown tool', vera, 'none', {}, {}],
  ]
  for (const [shows, caller, tool, input, hits] of rows)
    it(`counts ${shows}`, async () => {
      const gate = createGate({ tools, policy: TEAM })
      const view = await gate.view(caller)
      await view.call({ tool, input })
      assert.deepEqual(hitsOf(gate), hits)
    })

  it('counts calls, and neither lists nor explanations nor previews', async () => {
    const gate = createGate({ tools, policy: TEAM })
    const view = await gate.view(vera)
    view.explain('read')
    await view.preview({ tool: 'read' })
    await view.requestApproval({ tool: 'read' })
    assert.deepEqual(hitsOf(gate), {})
  })

  it('counts apart the calls that a shadow could not judge, and nothing as unknown of what is enforced', async () => {
    const clauses = [
      { match: 'mail', input: "'untrusted' in run.labels" },
      { match: 'mail', input: "input.to == 'x' && run.began('read')" },
      { match: 'mail', input: "input.to == 'x'" },
    ]
    const allow: Policy = {
      name: 'list',
      mode: 'shadow',
      allow: [{ match: 'mail', unless: "run.began('read')" }, 'mail'],
    }
    const policy: Policy[] = [
      { name: 'shadow', mode: 'shadow', deny: clauses },
      allow,
      { name: 'enforced', ask: clauses.slice(0, 1) },
    ]
    const gate = createGate({ tools, policy, approvals: memoryApprovals() })
    const view = await gate.view(vera)
    const counts = () =>
      gate
        .coverage()
        .flatMap(({ ref, hits, unjudged }) => (hits || unjudged ? [[clauseText(ref), hits, unjudged ?? 0]] : []))
    for (const to of ['x', 'y']) await view.call({ tool: 'mail', input: { to }, run: { id: 'lost', resumed: true } })
    assert.deepEqual(counts(), [
      ['shadow#deny[0]', 0, 2],
      ['shadow#deny[1]', 0, 1],
      ['shadow#deny[2]', 1, 0],
      ['list#allow[0]', 0, 2],
      ['list#allow[1]', 2, 0],
      ['enforced#ask[0]', 2, 0],
    ])
    const told = countsOf(gate)?.untold() ?? []
    const [, first] = told
    assert.deepEqual([first?.id, first?.hits], [unjudgedId(gate.coverage()[0]?.id ?? ''), 2])
    await view.call({ tool: 'mail', input: { to: 'x' }, run: { id: 'new' } })
    assert.deepEqual(counts().slice(0, 4), [
      ['shadow#deny[0]', 0, 2],
      ['shadow#deny[1]', 0, 1],
      ['shadow#deny[2]', 2, 0],
      ['list#allow[0]', 1, 2],
    ])
  })

  it('goes on counting a clause when policies without names move', async () => {
    const team: Policy = { allow: ['*'], deny: ['write'] }
    const gate = createGate({ tools, policy: [team] })
    const view = await gate.view(vera)
    await view.call({ tool: 'write' })
    gate.setPolicy([{ deny: ['mail'] }, team])
    assert.deepEqual(hitsOf(gate), { 'policy 2#allow[0]': 1, 'policy 2#deny[0]': 1 })
  })

  it('counts two clauses with the same text apart', async () => {
    const gate = createGate({ tools, policy: [{ allow: ['mail', 'read'] }, { allow: ['*', 'read'] }] })
    await (await gate.view(vera)).call({ tool: 'read' })
    assert.deepEqual(hitsOf(gate), { 'policy 1#allow[1]': 1, 'policy 2#allow[0]': 1 })
    assert.equal(new Set(gate.coverage().map(({ id }) => id)).size, 4)
  })

  it('returns what was not told, of clauses that are new or have hits, and not those of views and forks', async () => {
    const gate = createGate({ tools, policy: { allow: ['read', 'write'] } })
    const counts = countsOf(gate)
    assert.ok(counts)
    const ids = gate.coverage().map(({ id }) => id)
    const untold = () => counts.untold().map(({ id, hits }) => [ids.indexOf(id), hits])
    assert.deepEqual(untold(), [
      [0, 0],
      [1, 0],
    ])
    const view = (await gate.view(vera)).narrow({ policy: { allow: ['*'] } })
    counts.told(counts.untold())
    await view.call({ tool: 'write' })
    await view.call({ tool: 'write' })
    const first = counts.untold()
    assert.deepEqual(untold(), [[1, 2]])
    await view.call({ tool: 'write' })
    counts.told(first)
    assert.deepEqual(untold(), [[1, 1]])
  })

  it('says when, how many tools a clause matches, and where it is', async () => {
    const clock = manualClock()
    const gate = createGate({ tools, clock, policy: { name: 'p', allow: ['read', '*'] } })
    const countedSince = clock.wallMs()
    clock.advance(5000)
    await (await gate.view(vera)).call({ tool: 'read' })
    const ref = { policy: 'p', kind: 'allow' }
    const found = gate.coverage().map(({ id, ...rest }) => (assert.match(id, /^[\da-f]{32}$/), rest))
    assert.deepEqual(found, [
      {
        ref: { ...ref, index: 0, match: 'read' },
        path: 'policy[0].allow[0]',
        hits: 1,
        lastHitAt: countedSince + 5000,
        countedSince,
        matches: 1,
      },
      { ref: { ...ref, index: 1, match: '*' }, path: 'policy[0].allow[1]', hits: 0, countedSince, matches: 3 },
    ])
  })

  it('goes on counting a clause that a new policy has too, and begins with one that has changed', async () => {
    const gate = createGate({ tools, policy: { name: 'p', allow: ['read', 'write'] } })
    const view = await gate.view(vera)
    await view.call({ tool: 'read' })
    await view.call({ tool: 'write' })
    gate.setPolicy([{ name: 'p', allow: [{ match: 'write', when: 'true' }, 'read'] }])
    assert.deepEqual(hitsOf(gate), { 'p#allow[1]': 1 })
    await view.call({ tool: 'read' })
    assert.deepEqual(hitsOf(gate), { 'p#allow[1]': 2 })
  })

  it('counts more clauses than there was room for at first', async () => {
    const ids = Array.from({ length: 200 }, (_, i) => `t${i}`)
    const many = ids.map((name) => defineTool({ name, execute: () => name }))
    const gate = createGate({ tools: many, policy: { name: 'p', allow: ids } })
    const view = await gate.view(vera)
    for (const tool of ids) await view.call({ tool })
    assert.ok(gate.coverage().every(({ hits }) => hits === 1))
  })

  it('counts what an app adds', async () => {
    const gate = createGate({
      tools,
      policy: { name: 'p', allow: ['*'] },
      apps: { small: { tools: ['read'], policy: { name: 'of the app', allow: ['read'] } } },
    })
    await (await gate.view(vera, { app: 'small' })).call({ tool: 'read' })
    assert.deepEqual(hitsOf(gate), { 'p#allow[0]': 1, 'of the app#allow[0]': 1 })
  })

  it('goes on counting its own clauses, whatever the policies of runs are', async () => {
    const gate = createGate({ tools, policy: { name: 'p', allow: ['read', 'write'] } })
    const view = await gate.view(vera)
    const counts = countsOf(gate)
    counts?.told(counts.untold())
    await view.call({ tool: 'write' })
    for (let run = 0; run < 21; run++) {
      const deny = Array.from({ length: 5000 }, (_, i) => ({ match: 'mail', message: `${run}-${i}` }))
      await view.narrow({ policy: { deny } }).call({ tool: 'read' })
    }
    assert.deepEqual(hitsOf(gate), { 'p#allow[0]': 21, 'p#allow[1]': 1 })
    assert.deepEqual(
      counts?.untold().map(({ hits }) => hits),
      [21, 1],
    )
  })

  it('keeps nothing of the long texts of runs that are gone', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const audit = memoryAudit()
    const gate = createGate({ tools, policy: { name: 'p', allow: ['*'] }, audit })
    const view = await gate.view(vera)
    const start = async (run: number) => {
      const message = `${run} ${'x'.repeat(50_000)}`
      await view.narrow({ policy: { deny: [{ match: 'write', message }] } }).call({ tool: 'read' })
    }
    const heldAfter = async (runs: number) => {
      for (let run = 0; run < runs; run++) await start(run)
      // An entry that is not sealed yet holds its call.
      assert.ok(audit.records.length >= runs)
      // A WeakRef holds its object to the end of the turn in which it was made or asked.
      for (let i = 0; i < 3; i++) {
        await turn()
        collect()
      }
      return process.memoryUsage().heapUsed
    }
    const before = await heldAfter(10)
    const held = (await heldAfter(1000)) - before
    // The latest few hundred are held by what they were decided with.
    assert.ok(held < 25_000_000, `${held} bytes of 50 MB`)
  })
})

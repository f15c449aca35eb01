import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createGate, defineTool, type Gate, memoryAudit, type Policy } from '@toolgate/core'
import type { HistoryStore } from '@toolgate/core/stores'
import { manualClock } from './manual-clock.ts'
import { runs } from './runs.ts'

/** Bounds that a few calls exceed, for all histories and for each owner. */
export const TINY_ROOM = { maxBytes: 5000, maxBytesOfOwner: 2400 }

const RULES: readonly Policy[] = [
  { name: 'label', deny: [{ match: 'mail', input: "'untrusted' in run.labels" }] },
  { name: 'began', deny: [{ match: '*', input: "run.began('web', { 'input.n': input.n })" }] },
  { name: 'called', deny: [{ match: 'mail', input: "!run.called('pay', { 'input.n': input.n })" }] },
  { name: 'origin', deny: [{ match: 'pay', input: "!(origin(input.to) in ['user', 'trusted'])" }] },
]

const TOOLS = ['mail', 'web', 'pay'].map((name) =>
  defineTool({
    name,
    trusted: name !== 'web',
    execute: (input) => ({ text: `${name} says ${String((input as { readonly to: unknown }).to).repeat(12)}` }),
  }),
)

const somePolicies = fc.subarray([...RULES.keys()])
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      tool: fc.constantFrom('mail', 'web', 'pay'),
      n: fc.nat(20),
      user: fc.constantFrom('vera', 'bob'),
      run: fc.constantFrom(undefined, 'r1', 'r2', 'r3', 'r4'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ rules: somePolicies }) },
)
const story = fc.record({
  rules: somePolicies,
  shadows: fc.subarray([...RULES.keys()], { minLength: 1 }),
  steps: fc.array(step, { minLength: 10, maxLength: 40 }),
})
type Story = typeof story extends fc.Arbitrary<infer T> ? T : never

/** A story that fills both rooms, because a shadow about origins needs long texts. */
const WITHOUT_ROOM: Story = {
  rules: [0],
  shadows: [3],
  steps: Array.from({ length: 32 }, (_, i) => ({
    tool: i % 4 === 3 ? 'pay' : 'web',
    n: i,
    user: 'vera',
    run: (['r1', 'r2', 'r3', 'r4'] as const)[i >> 3],
  })),
}

/**
 * Asserts that calls end the same with and without shadows, even in a store with almost no room, and that shadows
 * without room answer that they do not know.
 */
export async function assertShadowsTakeNoRoom(store: HistoryStore): Promise<void> {
  const seen = { refused: 0, unknown: 0 }
  const endsWith = async (one: Story, shadows: readonly number[]) => {
    const opened = new Set<string>()
    const told = await endsOf(one, shadows, {
      ...store,
      read: async (id, since, nowMs) => store.read(id, since, nowMs),
      add: async (id, addition) => store.add(id, addition),
      end: async (id) => store.end(id),
      open: async (id, opening) => {
        opened.add(id)
        return store.open(id, opening)
      },
    })
    for (const id of opened) await store.end(id)
    seen.refused += told.ends.filter((end) => end.includes('history_full')).length
    seen.unknown += told.unknown
    return told.ends
  }
  await fc.assert(
    fc.asyncProperty(story, async (one) => {
      assert.deepEqual(await endsWith(one, one.shadows), await endsWith(one, []))
    }),
    { ...runs(15, 500), examples: [[WITHOUT_ROOM]] },
  )
  assert.ok(seen.refused > 0 && seen.unknown > 0, `room was never lacking: ${JSON.stringify(seen)}`)
}

/** Returns how each call ends, and the number of calls that the shadows could not judge. */
async function endsOf(
  { rules, steps }: Story,
  shadows: readonly number[],
  store: HistoryStore,
): Promise<{ readonly ends: readonly string[]; readonly unknown: number }> {
  const audit = memoryAudit()
  const more = policiesOf(shadows).map((policy): Policy => ({
    ...policy,
    name: `${policy.name} shadow`,
    mode: 'shadow',
  }))
  const policyOf = (which: readonly number[]) => [{ allow: ['*'] }, ...policiesOf(which), ...more]
  const gate: Gate = createGate({
    tools: TOOLS,
    audit,
    clock: manualClock(),
    history: { store },
    policy: policyOf(rules),
    onFault: () => {},
  })
  const ends: string[] = []
  for (const one of steps) {
    if ('rules' in one) {
      gate.setPolicy(policyOf(one.rules))
      continue
    }
    const { tool, n, user, run } = one
    const view = await gate.view({ user })
    const outcome = await view.call({
      tool,
      input: { n, to: `somebody${n}@example.com` },
      ...(run && { run: { id: `${user} ${run}`, userWords: `Write to somebody${n % 3}@example.com` } }),
    })
    const codes = 'decision' in outcome ? outcome.decision.reasons.map(({ code, text }) => `${code} ${text}`) : []
    ends.push([tool, outcome.status, outcome.text, ...codes].join('; '))
  }
  await gate.close()
  return { ends, unknown: audit.records.filter(({ would_outcome: would }) => would === 'unknown').length }
}

function policiesOf(which: readonly number[]): readonly Policy[] {
  return which.map((i) => RULES[i] as Policy)
}

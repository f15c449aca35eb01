import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool } from '@toolgate/core'
import { memoryLock } from '@toolgate/core/stores'
import { MockLanguageModelV4 } from 'ai/test'
import { createPlanner } from './planner.ts'

const NAMES = Array.from({ length: 12 }, (_, i) => `t${i}`)
const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

describe('overlapping runs of one planner', () => {
  it('each see, send and run their own, whatever the others may', async () => {
    const ran = new Map<string, Set<string>>()
    const sent = new Map<string, Set<string>>()
    const noteIn = (notes: Map<string, Set<string>>, key: string, name: string) =>
      notes.set(key, (notes.get(key) ?? new Set()).add(name))
    const tools = NAMES.map((name) =>
      defineTool({
        name,
        async execute(_, { caller }) {
          await turns(2)
          noteIn(ran, caller.user as string, name)
          return name
        },
      }),
    )
    const gate = createGate({
      tools,
      policy: { deny: [{ match: 't0', unless: "'admin' in caller.roles" }] },
    })
    const model = new MockLanguageModelV4({
      async doGenerate({ prompt, tools: offered }) {
        const user = JSON.stringify(prompt.find(({ role }) => role === 'user')?.content).match(/u\d+/)?.[0] as string
        await turns(user.length % 3)
        for (const { name } of offered ?? []) noteIn(sent, user, name)
        const isFirst = prompt.at(-1)?.role === 'user'
        return {
          // It calls all that there is, whatever it was shown.
          content: isFirst
            ? NAMES.map((name) => ({
                type: 'tool-call' as const,
                toolCallId: `${user}-${name}`,
                toolName: name,
                input: '{}',
              }))
            : [{ type: 'text' as const, text: user }],
          finishReason: isFirst ? { unified: 'tool-calls' as const, raw: '' } : { unified: 'stop' as const, raw: '' },
          usage: USAGE,
          warnings: [],
        }
      },
    })
    const sessions = memoryLock()
    const planner = createPlanner({ model, gate, sessions })
    const shownTo = (i: number) => NAMES.filter((_, n) => (n + i) % 3 !== 0)
    const users = Array.from({ length: 150 }, (_, i) => i)
    const results = await Promise.all(
      users.map((i) => {
        const caller: Caller = { user: `u${i}`, roles: i % 2 === 0 ? ['admin'] : [], session: `s${i % 40}` }
        return planner.run({ prompt: `I am u${i}.`, caller, visibility: shownTo(i) })
      }),
    )
    for (const i of users) {
      const expected = shownTo(i).filter((name) => name !== 't0' || i % 2 === 0)
      assert.deepEqual([...(sent.get(`u${i}`) ?? [])].toSorted(), expected.toSorted())
      assert.deepEqual([...(ran.get(`u${i}`) ?? [])].toSorted(), expected.toSorted())
      assert.equal(results[i]?.text, `u${i}`)
    }
    assert.equal(sessions.size, 0)
  })
})

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

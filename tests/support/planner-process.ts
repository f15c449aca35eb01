// One process that runs a planner over stores in SQLite: `planner-process.ts <database> <action> [<json>]`. It prints what
// came of it as one line of JSON. The tool writes what it did to a file beside the database.
import { appendFileSync } from 'node:fs'
import { createGate, defineTool } from '@toolgate/core'
import { createPlanner, type ResumeOptions } from '@toolgate/planner'
import { openSqliteStores } from '@toolgate/stores/sqlite'
import { MockLanguageModelV4 } from 'ai/test'

const [database = '', action = '', given = '{}'] = process.argv.slice(2)
const {
  token = '',
  times = 1,
  ...options
} = JSON.parse(given) as { token?: string; times?: number } & Omit<ResumeOptions, 'caller'>

const stores = openSqliteStores({ path: database })
const gate = createGate({
  tools: [
    defineTool({
      name: 'pay',
      description: action === 'resume-changed' ? 'Pays whomever it likes.' : 'Pays.',
      execute: ({ cents }: { cents: number }) => {
        appendFileSync(`${database}.ran`, `paid ${cents}\n`)
        return `paid ${cents}`
      },
    }),
  ],
  policy: { ask: ['pay'] },
  approvals: stores.approvals,
  state: stores.state,
})
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
const model = new MockLanguageModelV4({
  async doGenerate({ prompt }) {
    const asked = prompt.at(-1)?.role === 'user'
    return {
      content: asked
        ? [{ type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: '{"cents":5}' }]
        : [{ type: 'text', text: 'Paid.' }],
      finishReason: asked ? { unified: 'tool-calls', raw: '' } : { unified: 'stop', raw: '' },
      usage,
      warnings: [],
    }
  },
})
const planner = createPlanner({
  model,
  gate,
  sessions: stores.lock,
  state: stores.state,
  keys: [{ id: 'k1', secret: 'a secret of at least thirty-two bytes' }],
})

const caller = { user: 'vera', tenant: 'acme', session: 's1' }
if (action === 'run') {
  console.log(JSON.stringify(await planner.run({ prompt: 'Pay.', caller })))
  // As a crash: nothing is closed, and what is not on the disk is lost.
  process.kill(process.pid, 'SIGKILL')
}
const settled = await Promise.allSettled(
  Array.from({ length: times }, () => planner.resume(token, { caller, ...options })),
)
const results = settled.map((one) =>
  one.status === 'fulfilled' ? one.value : { status: (one.reason as { code: string }).code },
)
console.log(JSON.stringify(results))
await gate.close()
stores.close()

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { LABELS, LIMITS, POLICY, RUN_CASES, TOOLS, USER_WORDS } from './support/run-cases.ts'

/** The same cases run through the gateway in `runs.e2e.test.ts`. */
describe('runs in the library', () => {
  for (const [name, steps] of Object.entries(RUN_CASES))
    it(name, async () => {
      const tools = Object.entries(TOOLS).map(([id, { output = { ok: true }, text, ...more }]) => {
        const [namespace, tool = ''] = id.split(':')
        return defineTool({ namespace, name: tool, ...more, execute: () => text ?? output })
      })
      const view = await createGate({ tools, policy: POLICY, limits: LIMITS, labels: LABELS }).view({ user: 'vera' })
      for (const [which, tool, input, expected] of steps) {
        const run = which === 'root' ? { id: 'root', userWords: USER_WORDS } : { id: 'child', history: 'root' }
        const { status } = await view.call({ tool, input, run })
        const outcome = status === 'done' ? 'runs' : status === 'waiting' ? 'asks' : status
        assert.equal(outcome, expected, `${which} ${tool} ${JSON.stringify(input)}`)
      }
    })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import type { ApprovalStore } from '../ports/ports.ts'
import { redactor } from '@toolgate/values/redact'
import { defineTool } from '../tools/tool.ts'

const VERA = { user: 'vera' }

/** Asks about an input, and returns what happened in its order: `other` is a turn of the event loop. */
async function eventsOf(input: Record<string, unknown>, rules = 1): Promise<readonly string[]> {
  const events: string[] = []
  const store = memoryApprovals()
  const approvals: ApprovalStore = {
    ...store,
    request: (...asked) => {
      events.push('kept')
      return store.request(...asked)
    },
  }
  const gate = createGate({
    tools: [defineTool({ name: 'send', execute: () => 'sent' })],
    policy: { ask: Array.from({ length: rules }, (_, i) => ({ match: 'send', input: `input.n != ${i}` })) },
    approvals,
    redactor: {
      ...redactor,
      redactValue: (value) => {
        events.push('masked')
        return redactor.redactValue(value)
      },
    },
  })
  const view = await gate.view(VERA)
  let running = true
  const turn = (): void => {
    if (!running) return
    if (events.at(-1) !== 'other') events.push('other')
    setImmediate(turn)
  }
  setImmediate(turn)
  const asked = view.call({ tool: 'send', input })
  assert.equal((await asked).status, 'waiting')
  running = false
  return events.slice(0, events.indexOf('kept') + 1)
}

describe('an approval of a large input', () => {
  it('lets other callers go first before it masks the input, and before it keeps it', async () => {
    const events = await eventsOf({ n: -1, text: 'a word '.repeat(20_000) })
    assert.deepEqual(events, ['other', 'masked', 'other', 'kept'])
  })

  it('masks the input once, however many rules ask', async () => {
    const events = await eventsOf({ n: -1, text: 'a word '.repeat(20_000) }, 10)
    assert.equal(events.filter((event) => event === 'masked').length, 1)
  })

  it('waits for nobody where the input is small', async () => {
    assert.deepEqual(await eventsOf({ n: -1, text: 'a word' }), ['masked', 'kept'])
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from './gate.ts'
import type { GateOptions } from './options.ts'
import { TERMINAL_EVENTS } from '../ports/ports.ts'
import { type CallContext, defineTool } from '../tools/tool.ts'

const VERA = { user: 'vera' }

function setup(
  options: Omit<GateOptions, 'tools'> = {},
  execute: (input: unknown, call: CallContext) => unknown = () => new Promise(() => {}),
) {
  const audit = memoryAudit()
  const tools = ['slow', 'hidden'].map((name) => defineTool({ name, execute }))
  const gate = createGate({ tools, audit, policy: { deny: ['hidden'] }, ...options })
  const ends = () =>
    audit.records.flatMap(({ event, reason, error }) =>
      TERMINAL_EVENTS.has(event) ? [error === undefined ? [event, reason] : [event, reason, error]] : [],
    )
  return { gate, ends }
}

const CLOSED = ['tool_abandoned', 'gate_closed', 'the gate was closed']

describe('gate.close', () => {
  it('aborts calls that run: the caller is answered, and the record says why', async () => {
    const told: unknown[] = []
    const { gate, ends } = setup({}, (_, { signal }) => {
      signal.addEventListener('abort', () => told.push(signal.reason))
      return new Promise(() => {})
    })
    const running = (await gate.view(VERA)).call({ tool: 'slow' })
    await new Promise(setImmediate)
    await gate.close()
    assert.deepEqual(ends(), [CLOSED])
    const outcome = await running
    assert.deepEqual([outcome.status, outcome.text], ['failed', 'slow failed: the gate was closed'])
    assert.match(String(told), /the gate was closed/)
  })

  it('refuses what waits for a slot or a hook, and gives back nothing that was not taken', async () => {
    const { gate, ends } = setup({ concurrency: 'slow:1' })
    const view = await gate.view(VERA)
    void view.call({ tool: 'slow' })
    const forSlot = view.call({ tool: 'slow' })
    const hooks = { beforeToolCall: () => new Promise<undefined>(() => {}) }
    const forHook = view.call({ tool: 'slow', hooks })
    await new Promise(setImmediate)
    await gate.close()
    for (const outcome of [await forSlot, await forHook]) {
      assert.deepEqual([outcome.status, outcome.text], ['refused', 'TOOL_CALL_BLOCKED: the gate was closed'])
    }
    assert.deepEqual(ends().toSorted(), [CLOSED.slice(0, 2), CLOSED.slice(0, 2), CLOSED])
  })

  it('ends a stream that is still read', async () => {
    const { gate, ends } = setup({}, async function* () {
      yield 1
      await new Promise(() => {})
    })
    const outcome = await (await gate.view(VERA)).call({ tool: 'slow' })
    const items: unknown[] = []
    const reading = (async () => {
      for await (const item of outcome.status === 'done' ? (outcome.output as AsyncIterable<unknown>) : [])
        items.push(item)
    })()
    const read = assert.rejects(reading, /the gate was closed/)
    await new Promise(setImmediate)
    await gate.close()
    await read
    assert.deepEqual([items, ends()], [[1], [CLOSED]])
  })

  it('waits for the records of the calls that it stopped', async () => {
    const written = Promise.withResolvers<void>()
    const { gate } = setup({
      audit: {
        write: ({ event }) => (event === 'tool_call' ? undefined : written.promise),
        flush: async () => {},
        close: async () => {},
      },
    })
    void (await gate.view(VERA)).call({ tool: 'slow' })
    await new Promise(setImmediate)
    let isClosed = false
    const closing = gate.close().then(() => (isClosed = true))
    await new Promise(setImmediate)
    assert.equal(isClosed, false)
    written.resolve()
    await closing
  })

  it('lets nothing begin after it, through views and forks of before either', async () => {
    let runs = 0
    const { gate, ends } = setup({}, () => runs++)
    const views = [await gate.view(VERA), await gate.fork({}).view(VERA)]
    const entering = views[0]?.call({ tool: 'slow' })
    await entering
    await gate.close()
    for (const view of views) {
      const outcome = await view.call({ tool: 'slow' })
      assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: the gate was closed')
    }
    assert.deepEqual([runs, ends()], [1, [['tool_result', undefined], CLOSED.slice(0, 2), CLOSED.slice(0, 2)]])
  })

  it('stops a call whose record is being written while it closes', async () => {
    const written = Promise.withResolvers<void>()
    let runs = 0
    const { gate } = setup(
      {
        audit: {
          write: ({ event }) => (event === 'tool_call' ? written.promise : undefined),
          flush: async () => {},
          close: async () => {},
        },
      },
      () => runs++,
    )
    const call = (await gate.view(VERA)).call({ tool: 'slow' })
    const closing = gate.close()
    written.resolve()
    assert.equal((await call).text, 'TOOL_CALL_BLOCKED: the gate was closed')
    await closing
    assert.equal(runs, 0)
  })

  it('asks neither hooks nor people any more', async () => {
    const asked: string[] = []
    const { gate } = setup({
      policy: { ask: ['slow'] },
      hooks: { beforeToolCall: ({ tool }) => void asked.push(tool.id) },
    })
    const view = await gate.view(VERA)
    await gate.close()
    await view.call({ tool: 'slow' })
    assert.deepEqual([asked, await gate.approvals.list()], [[], []])
  })

  it('reveals nothing about a tool that the caller may not see', async () => {
    const { gate } = setup()
    const view = await gate.view(VERA)
    const before = await view.call({ tool: 'hidden' })
    await gate.close()
    assert.equal((await view.call({ tool: 'hidden' })).text, before.text)
  })

  it('does it once, and on a fork does nothing', async () => {
    const { gate } = setup({}, () => 'ok')
    const view = await gate.view(VERA)
    await gate.fork({}).close()
    assert.equal((await view.call({ tool: 'slow' })).status, 'done')
    await Promise.all([gate.close(), gate.close()])
  })
})

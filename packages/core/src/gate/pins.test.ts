import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import type { GateOptions } from './options.ts'
import { defineTool } from '../tools/tool.ts'

const toolWith = (description: string) =>
  defineTool({ namespace: 'files', name: 'read', description, execute: () => 'read' })

function open(options: GateOptions) {
  let listed = toolWith('Reads.')
  let announce = () => {}
  const subscribe = (listener: () => void) => {
    announce = listener
    return () => {}
  }
  const gate = createGate({ sources: [{ name: 'files', tools: () => [listed], subscribe }], ...options })
  const change = (description: string) => {
    listed = toolWith(description)
    announce()
  }
  return { gate, change }
}

describe('createGate with pins', () => {
  it('runs nothing of a definition that nobody accepted, also in a view of before', async () => {
    const { gate, change } = open({ pins: 'suspend' })
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'files:read' })).status, 'done')
    change('Reads and sends.')
    const { status, text } = await view.call({ tool: 'files:read' })
    assert.equal(status, 'refused')
    assert.equal(
      text,
      'files:read is suspended: its definition has changed. A person has to accept its definition first.',
    )
    assert.deepEqual((await gate.view({ user: 'vera' })).ids, [])
    const hash = gate.pins.list()[0]?.hash ?? ''
    await gate.pins.accept('files:read', { hash, by: 'vera' })
    const next = await gate.view({ user: 'vera' })
    assert.deepEqual([next.ids, (await next.call({ tool: 'files:read' })).status], [['files:read'], 'done'])
    await gate.close()
  })

  it('hides what is in quarantine like a tool that does not exist', async () => {
    const { gate, change } = open({ definitions: 'quarantine' })
    change('Reads.\u200b')
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.ids, [])
    assert.equal(
      (await view.call({ tool: 'files:read' })).text,
      'Tool "files:read" is not available. Available tools: (none).',
    )
    await gate.close()
  })
})

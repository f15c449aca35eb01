import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../../audit/memory.ts'
import { createGate } from '../../gate/gate.ts'
import type { GateOptions } from '../../gate/options.ts'
import type { Source } from '../../tools/catalog.ts'
import { definePrompt, defineResource, defineTemplate } from '../../tools/items.ts'
import { defineTool, type Tool } from '../../tools/tool.ts'

const URI = 'db://a'
const ID = `resource:db:${URI}`
const resource = (more: object = {}) => defineResource({ uri: URI, namespace: 'db', execute: () => 'read', ...more })
const template = (description: string) => defineTemplate({ uriTemplate: 'db://{name}', namespace: 'db', description })

async function pinned(first: readonly Tool[], then: readonly Tool[], options: GateOptions = {}) {
  let listed = first
  let changed = () => {}
  const source: Source = {
    name: 'db',
    namespaces: ['db'],
    tools: () => listed,
    unlisted: (uri) => defineResource({ uri, namespace: 'db', execute: () => 'read' }),
    subscribe: (listener) => {
      changed = listener
      return () => {}
    },
  }
  const audit = memoryAudit()
  const policy = { allow: ['*', 'resource:*:*', 'prompt:*:*'] }
  const gate = createGate({ sources: [source], policy, audit, pins: 'suspend', onWarning: () => {}, ...options })
  await settled()
  listed = then
  changed()
  await settled()
  return { gate, audit }
}

/** The pins of a gate settle in the turns of its store. */
const settled = async () => {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}

describe('pins of resources and prompts', () => {
  const changes: readonly (readonly [what: string, before: Tool, now: Tool])[] = [
    ['its type', resource({ mimeType: 'text/plain' }), resource({ mimeType: 'text/html' })],
    ['its description', resource(), resource({ description: 'new' })],
    ['its icons', resource(), resource({ icons: [{ src: 'data:,' }] })],
    ['its _meta', resource(), resource({ _meta: { 'ui/csp': 'any' } })],
    ['its annotations', resource(), resource({ annotations: { audience: ['assistant'] } })],
    ['an unknown field', resource(), resource({ fields: { x: 1 } })],
    [
      'the arguments of a prompt',
      definePrompt({ name: 'ask', namespace: 'db' }),
      definePrompt({ name: 'ask', namespace: 'db', arguments: [{ name: 'a' }] }),
    ],
  ]
  for (const [what, before, now] of changes)
    it(`suspend an item that changes ${what}, until a person accepts it`, async () => {
      const { gate, audit } = await pinned([before], [now])
      const { id } = before
      assert.equal((await gate.view({})).explain(id).reasons[0]?.code, 'tool_suspended')
      assert.equal((await gate.view({})).has(id), false)
      const event = audit.records.find((record) => record.event === 'tool_changed')
      assert.deepEqual([event?.tool, event?.kind], [id, before.kind])
      const [pin] = gate.pins.list()
      await gate.pins.accept(id, { hash: pin?.hash ?? '', by: 'vera' })
      assert.equal((await gate.view({})).has(id), true)
    })

  it('let the size and the time of the last change pass', async () => {
    const now = resource({ size: 2, annotations: { lastModified: '2026-01-01T00:00:00Z' } })
    const { gate } = await pinned([resource({ size: 1 })], [now])
    assert.equal((await gate.view({})).has(ID), true)
    assert.deepEqual(gate.pins.list(), [])
  })

  it('suspend with a template every resource that it may match, listed or not', async () => {
    const { gate } = await pinned([template('a'), resource()], [template('b'), resource()])
    const view = await gate.view({})
    assert.deepEqual([view.has(ID), view.has('resource:db:db://other')], [false, false])
    assert.equal(view.has('resource:db:db://other/deeper'), true)
  })

  it('hold new ones, where new tools are held, and not the first of a server', async () => {
    const prompt = (name: string) => definePrompt({ name, namespace: 'db' })
    const tool = defineTool({ name: 'query', namespace: 'db' })
    const { gate } = await pinned([tool], [tool, prompt('a'), resource()], { pins: { new: 'suspend' } })
    const view = await gate.view({})
    assert.deepEqual([view.has('prompt:db:a'), view.has(ID)], [true, true])
    const later = await pinned([prompt('a')], [prompt('a'), prompt('b')], { pins: { new: 'suspend' } })
    assert.equal((await later.gate.view({})).explain('prompt:db:b').reasons[0]?.code, 'tool_suspended')
  })

  it('never hold a resource that nobody lists', async () => {
    const { gate } = await pinned([resource()], [resource()], { pins: { changed: 'suspend', new: 'suspend' } })
    const outcome = await (await gate.view({})).call({ tool: 'resource:db:db://x', input: { uri: 'db://x' } })
    assert.equal(outcome.status, 'done')
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallContext } from '@toolgate/core'
import { serverNameOf } from './served-name.ts'
import { ServerItems } from './server-items.ts'
import { ServerTools } from './server-tools.ts'

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })

function serverTools() {
  const called: string[] = []
  const tools = new ServerTools({
    namespace: 's',
    trustHints: false,
    overlays: [['greet_(form)', { tags: ['x'] }]],
    executeOf: (name) => () => called.push(name),
  })
  return { tools, called }
}

describe('a name that selectors cannot hold', () => {
  it('is served as another, and called as the server wrote it', async () => {
    const { tools, called } = serverTools()
    tools.read([tool('greet (form)'), tool('a:b'), tool('c*')])
    assert.deepEqual(
      tools.tools.map(({ id }) => id),
      ['s:greet_(form)', 's:a_b', 's:c_'],
    )
    for (const { execute } of tools.tools) await execute?.({} as never, {} as CallContext)
    assert.deepEqual(called, ['greet (form)', 'a:b', 'c*'])
    assert.deepEqual(tools.tools[0]?.tags, ['x'])
    assert.deepEqual(tools.unmatched, [])
  })

  it('is named to the operator', () => {
    const { tools } = serverTools()
    tools.read([tool('greet (form)')])
    const [left] = tools.leftOut
    assert.deepEqual([left?.tool, left?.part], ['greet (form)', 'name'])
    assert.match(left?.error.message ?? '', /"greet_\(form\)"/)
  })

  it('keeps its object when it is listed again unchanged', () => {
    const { tools } = serverTools()
    tools.read([tool('greet (form)')])
    const [before] = tools.tools
    tools.read([tool('greet (form)')])
    assert.equal(tools.tools[0], before)
  })

  it('never takes the place of a tool that has the name', async () => {
    const { tools, called } = serverTools()
    tools.read([tool('a b'), tool('a_b'), tool('a:b')])
    assert.deepEqual(
      tools.tools.map(({ id }) => id),
      ['s:a_b'],
    )
    await tools.tools[0]?.execute?.({} as never, {} as CallContext)
    assert.deepEqual(called, ['a_b'])
    assert.deepEqual(
      tools.leftOut.map(({ tool: name, part }) => [name, part]),
      [
        ['a b', undefined],
        ['a:b', undefined],
      ],
    )
  })

  it('stays invalid with hidden or control characters', () => {
    const { tools } = serverTools()
    tools.read([tool('a\u200Bb'), tool('a\nb'), tool('')])
    assert.deepEqual(tools.tools, [])
    assert.equal(tools.leftOut.length, 3)
  })

  it('of a prompt too', async () => {
    const got: string[] = []
    const items = new ServerItems({
      namespace: 's',
      resources: [],
      prompts: [],
      read: () => undefined,
      getPrompt: (name) => got.push(name),
    })
    items.read({ resources: [], templates: [], prompts: [{ name: 'ask me' }, { name: 'x:y' }, { name: 'ask_me2' }] })
    assert.deepEqual(
      items.items.map(({ id }) => id),
      ['prompt:s:x:y', 'prompt:s:ask_me2', 'prompt:s:ask_me'],
    )
    for (const item of items.items) await item.execute?.({} as never, {} as CallContext)
    assert.deepEqual(got, ['x:y', 'ask_me2', 'ask me'])
    assert.deepEqual(items.items.map(serverNameOf), got)
    assert.deepEqual(
      items.leftOut.map(({ name, part }) => [name, part]),
      [['ask me', 'name']],
    )
  })
})

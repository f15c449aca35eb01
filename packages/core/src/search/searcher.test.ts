import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import { metaTools } from './meta-tools.ts'
import type { SearchAbout, Searcher } from './searcher.ts'

const tools = ['create_directory', 'send_mail', 'secret_vault'].map((name) =>
  defineTool({ name, description: `Can ${name.replace('_', ' ')}.`, execute: () => 'done' }),
)
const VERA = { user: 'vera', session: 's1' }

interface Found {
  readonly tools: readonly { readonly name: string }[]
  readonly hint?: string
}

function opened(searcher: Searcher, more: object = {}) {
  const warnings: string[] = []
  const meta = metaTools({ searcher, onWarning: (text) => void warnings.push(text), ...more })
  const gate = createGate({ tools: [...tools, ...meta], policy: { deny: ['secret_*'] }, onWarning: () => {} })
  const search = async (query: string, input: object = {}) => {
    const outcome = await (await gate.view(VERA)).call({ tool: 'search_tools', input: { query, ...input } })
    assert.ok(outcome.status === 'done', outcome.text)
    const found = outcome.output as Found
    return found.tools.map(({ name }) => name)
  }
  return { gate, warnings, search }
}

describe('a searcher of the host', () => {
  it('orders the tools by what they mean', async () => {
    const { search, warnings } = opened({ search: async () => ['create_directory', 'send_mail'] })
    assert.deepEqual(await search('make a folder'), ['create_directory', 'send_mail'])
    assert.deepEqual(await search('make a folder', { limit: 1 }), ['create_directory'])
    assert.deepEqual(warnings, [])
  })

  it('shows nothing that the caller does not see, whatever it returns', async () => {
    const seen: SearchAbout[] = []
    const { search } = opened({
      search(_, about) {
        seen.push(about)
        return ['secret_vault', 'no_such_tool', 'send_mail', 'send_mail']
      },
    })
    assert.deepEqual(await search('vault'), ['send_mail'])
    assert.equal(seen[0]?.caller.user, 'vera')
    assert.ok(!seen[0]?.among.includes('secret_vault'))
    assert.ok(seen[0]?.among.includes('send_mail'))
  })

  it('is answered for by the search by words if only hidden and unknown tools are in its answer', async () => {
    const { search } = opened({ search: () => ['secret_vault', 'gone'] })
    assert.deepEqual(await search('mail'), ['send_mail'])
    assert.deepEqual(await opened({ search: () => [] }).search('mail'), [], 'but an empty answer is one')
  })

  it('shows no tool that is denied while it works', async () => {
    const world: { gate?: ReturnType<typeof createGate> } = {}
    const { gate, search } = opened({
      async search() {
        world.gate?.setPolicy({ deny: ['send_mail', 'secret_*'] })
        return ['send_mail', 'create_directory']
      },
    })
    world.gate = gate
    assert.deepEqual(await search('mail'), ['create_directory'])
  })

  const broken: readonly (readonly [what: string, search: () => unknown, problem: RegExp])[] = [
    ['throws', () => assert.fail('the index is gone'), /the index is gone/],
    ['rejects', () => Promise.reject(new Error('no network')), /no network/],
    ['returns no list', () => 'send_mail', /must return a list of tool ids/],
    ['returns other values', () => ['send_mail', 7], /must return a list of tool ids/],
    ['never answers', () => new Promise(() => {}), /no answer in/],
  ]
  for (const [what, answer, problem] of broken)
    it(`that ${what} is warned of, and the search by words answers`, async () => {
      const { search, warnings } = opened({ search: answer as Searcher['search'] }, { searchDeadlineMs: 20 })
      assert.deepEqual(await search('mail'), ['send_mail'])
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', problem)
    })

  it('aborts its signal at the deadline', async () => {
    const aborted = Promise.withResolvers<void>()
    const { search } = opened(
      {
        search: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              aborted.resolve()
              reject(new Error('stopped'))
            })
          }),
      },
      { searchDeadlineMs: 20 },
    )
    await search('mail')
    await aborted.promise
  })

  it('fails no search when the receiver of warnings throws', async () => {
    const { search } = opened({ search: () => assert.fail() }, { onWarning: () => assert.fail() })
    assert.deepEqual(await search('mail'), ['send_mail'])
  })

  it('opens locked groups as the search by words does, and those only', async () => {
    const gate = createGate({
      tools: [
        ...tools,
        ...metaTools({
          searcher: { search: () => ['send_mail', 'secret_vault'] },
          onFound: (caller, ids) => gate.locks.found(caller, ids),
        }),
      ],
      groups: {
        mail: { tools: ['send_mail'], unlock: 'search' },
        vault: { tools: ['secret_vault'], unlock: 'request' },
      },
    })
    const view = await gate.view(VERA)
    const outcome = await view.call({ tool: 'search_tools', input: { query: 'x' } })
    assert.ok(outcome.status === 'done')
    assert.deepEqual(
      (outcome.output as Found).tools.map(({ name }) => name),
      ['send_mail'],
    )
    assert.deepEqual([view.narrow({}).has('send_mail'), view.narrow({}).has('secret_vault')], [true, false])
  })

  it('is checked when the tools are made', () => {
    const loose = (options: object) => () => metaTools(options)
    assert.throws(loose({ searcher: {} }), { path: 'metaTools.searcher' })
    assert.throws(loose({ searcher: async () => [] }), { path: 'metaTools.searcher' })
    assert.throws(loose({ searcher: { search: () => [] }, searchDeadlineMs: 0 }), {
      path: 'metaTools.searchDeadlineMs',
    })
    assert.throws(loose({ search: { search: () => [] } }), /searcher/)
  })
})

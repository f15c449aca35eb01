import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createGate } from '../gate/gate.ts'
import { naiveSearch, naiveText } from '../../../testing/support/naive-search.ts'
import { openWorld, viewOptionsOf, worldArbitrary } from '../../../testing/support/worlds.ts'
import { definePrompt, defineResource, defineTemplate } from '../tools/items.ts'
import { ITEM_KINDS } from '../tools/tool-id.ts'
import { defineTool, type Tool, type ToolDefinition } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

const file = new URL('relevance-tools.test.json', import.meta.url)
const { tools: definitions } = JSON.parse(readFileSync(file, 'utf8')) as { tools: readonly ToolDefinition[] }
const tools = definitions.map((definition) => defineTool(definition))
const ids = tools.map(({ id }) => id)
const texts = new Map(tools.map((tool) => [tool.id, naiveText(tool)]))
const words = [...new Set([...texts.values()].flatMap(({ weights }) => [...weights.keys()]))].map((word) =>
  word.replace('=', ''),
)

/** Words of the tools, beginnings of them, and anything. */
const word = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...words) },
  { weight: 2, arbitrary: fc.tuple(fc.constantFrom(...words), fc.nat(4)).map(([text, n]) => text.slice(0, n + 1)) },
  fc.string({ maxLength: 6 }),
)
const query = fc
  .tuple(fc.array(word, { maxLength: 5 }), fc.constantFrom('', ' '))
  .map(([parts, end]) => parts.join(' ') + end)
const someWords = fc.array(fc.constantFrom(...words), { minLength: 4, maxLength: 8 }).map((parts) => parts.join(' '))
const limit = fc.constantFrom(1, 3, 10, 100)

/** The same texts as items of every kind. The template of a scheme may match all its resources. */
const offered: readonly Tool[] = definitions.map((definition, i) => {
  const { name, namespace = 'files', title, description, tags } = definition
  const shared = { name, namespace, title, description, tags }
  const start = `s${Math.floor(i / 16)}://host/`
  if (i % 16 === 0) return defineTemplate({ ...shared, uriTemplate: `${start}{+path}` })
  if (i % 3 === 0) return defineTool(definition)
  if (i % 3 === 1) return definePrompt({ ...shared, arguments: [{ name: 'path' }, { name: 'query' }] })
  return defineResource({ ...shared, uri: `${start}${name}.md` })
})
const naiveTexts = new Map(offered.map((item) => [item.id, naiveText(item)]))
const toNaive = (items: readonly Tool[]) =>
  items.map(({ id }) => naiveTexts.get(id)).filter((text) => text !== undefined)
const kindsArbitrary = fc
  .subarray([...ITEM_KINDS])
  .chain((kinds) => fc.shuffledSubarray(kinds, { minLength: kinds.length }))

/** Ways to hide some items: no allow, a deny of it or of a template, and a clause about its own URI. */
const someIds = fc.subarray(
  offered.map(({ id }) => id),
  { maxLength: 20 },
)
const hiding = fc.record({
  unnamed: someIds,
  denied: someIds,
  uris: fc.constantFrom('', 'read', 'create', 's2:'),
  later: someIds,
})

interface Hiding {
  readonly unnamed: readonly string[]
  readonly denied: readonly string[]
  readonly uris: string
  readonly later: readonly string[]
}

/** Returns a view, and a view of the same caller after a further policy. */
async function openItems({ unnamed, denied, uris, later }: Hiding) {
  const clause = { match: 'resource:*:*', input: `input.uri.contains('${uris}')` }
  const allow = offered.map(({ id }) => id).filter((id) => !unnamed.includes(id))
  const policy = { allow, deny: [...denied, ...(uris === '' ? [] : [clause])] }
  const gate = createGate({ tools: offered, policy })
  const view = await gate.view({})
  gate.setPolicy({ ...policy, deny: [...policy.deny, ...later] })
  return { view, today: await gate.view({}) }
}

describe('a search', () => {
  it('ranks as the formula does, over the visible tools and nothing else', async () => {
    const gate = createGate({ tools })
    await fc.assert(
      fc.asyncProperty(fc.subarray(ids), query, limit, async (visible, asked, most) => {
        const view = await gate.view({}, { visibility: visible })
        const expected = naiveSearch(
          view.ids.map((id) => texts.get(id) as ReturnType<typeof naiveText>),
          asked,
          most,
        )
        const hits = view.search(asked, { limit: most, detail: 'names' })
        assert.deepEqual(
          hits.map(({ id }) => id),
          expected.map(({ id }) => id),
        )
        for (const [i, { score }] of hits.entries()) assert.ok(Math.abs(score - (expected[i]?.score ?? 0)) < 0.0011)
      }),
      runs(400),
    )
  })
})

describe('a search does not reveal hidden tools', () => {
  it('leaves no trace in it: hits, scores, order and details are those of a catalog without the hidden tools', async () => {
    await fc.assert(
      fc.asyncProperty(fc.subarray(ids), query, limit, async (visible, asked, most) => {
        const view = await createGate({ tools }).view({}, { visibility: visible })
        const without = await createGate({ tools: tools.filter(({ id }) => visible.includes(id)) }).view({})
        const options = { limit: most, detail: 'schemas' as const }
        assert.deepEqual(view.search(asked, options), without.search(asked, options))
      }),
      runs(100),
    )
  })

  it('does not depend on the tool that opens locked groups, and does not find it', async () => {
    const groups = { g: { tools: ['files:write'], unlock: 'request' as const } }
    const files = ['read', 'write'].map((name) => defineTool({ name, namespace: 'files', description: 'A request.' }))
    const view = await createGate({ tools: files, groups }).view({ session: 's1' })
    assert.ok(view.has('request_tools'))
    const without = await createGate({ tools: files.slice(0, 1) }).view({})
    assert.deepEqual(view.search('request'), without.search('request'))
  })

  it('leaves no trace of hidden resources, templates and prompts, and ranks the visible ones of all kinds together', async () => {
    let found = 0
    await fc.assert(
      fc.asyncProperty(
        hiding,
        kindsArbitrary,
        fc.oneof(query, someWords),
        limit,
        async (hidden, kinds, asked, most) => {
          const { view, today } = await openItems(hidden)
          const visible = kinds.flatMap((kind) => view.items(kind).filter(({ id }) => today.has(id)))
          const options = { limit: most, detail: 'schemas' as const, kinds }
          const hits = view.search(asked, options)
          const expected = naiveSearch(toNaive(visible), asked, most)
          assert.deepEqual(
            hits.map(({ id }) => id),
            expected.map(({ id }) => id),
          )
          for (const [i, { score }] of hits.entries()) assert.ok(Math.abs(score - (expected[i]?.score ?? 0)) < 0.0011)
          for (const { id, kind } of hits) assert.equal(view.get(id)?.kind, kind)
          const allowed = visible.map(({ id }) => id)
          const without = await createGate({ tools: visible, policy: { allow: allowed } }).view({})
          assert.deepEqual(without.search(asked, options), hits)
          found += hits.length
        },
      ),
      runs(60),
    )
    assert.ok(found > 0, 'no search found anything')
  })

  it('is the same for every way to hide a tool: policy, scopes, visibility, availability or the step', async () => {
    const asked = fc.constantFrom(
      'read',
      'write file',
      'delete all',
      'to',
      'danger',
      'search admin',
      'web',
      'constructor',
      're',
    )
    await fc.assert(
      fc.asyncProperty(worldArbitrary, asked, async (world, text) => {
        const full = openWorld(world)
        const view = await full.gate.view(world.caller, viewOptionsOf(world))
        const without = openWorld(world)
        without.offer(view.ids)
        const smaller = await without.gate.view(world.caller, viewOptionsOf({ ...world, activeTools: undefined }))
        const hits = view.search(text, { limit: 100, detail: 'schemas' })
        assert.deepEqual(hits, smaller.search(text, { limit: 100, detail: 'schemas' }))
        for (const { id } of hits) assert.ok(view.has(id), id)
      }),
      runs(200),
    )
  })
})

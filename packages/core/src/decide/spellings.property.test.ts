import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createGate } from '../gate/gate.ts'
import { runs } from '../../../testing/src/runs.ts'
import { defineResource } from '../tools/items.ts'
import { toNormalUri } from '../tools/uri.ts'

/** A path whose every character is written in one of these ways, and whose slashes may be written as servers read them. */
const WRITE: readonly ((character: string) => string)[] = [
  (character) => (/[!(),:@a-z]/.test(character) ? character : encodeURIComponent(character)),
  (character) => Array.from(Buffer.from(character), (byte) => `%${byte.toString(16)}`).join(''),
  (character) => Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).toUpperCase()}`).join(''),
  (character) => encodeURIComponent(encodeURIComponent(character)),
  (character) => encodeURIComponent(character.normalize('NFD')),
]
const name = fc
  .array(fc.constantFrom(...Array.from('ab!(),:@ é?#')), { minLength: 1, maxLength: 4 })
  .map((all) => all.join(''))
  .filter((text) => !text.endsWith(' '))
const start = fc.constantFrom('file:///', 'notes://h/', 'https://h.de/', 'memo:///')
const plainSpelling = fc.record({
  ways: fc.array(fc.nat(2), { minLength: 1, maxLength: 3 }),
  slashes: fc.constant(['/']),
})
const anySpelling = fc.record({
  ways: fc.array(fc.nat(WRITE.length - 1), { minLength: 1, maxLength: 3 }),
  slashes: fc.array(fc.constantFrom('/', '/', '//', '/./', '%2F', '%5C', '/x/../'), { minLength: 1, maxLength: 2 }),
})

interface Spelling {
  readonly ways: readonly number[]
  readonly slashes: readonly string[]
}

function spell(begin: string, names: readonly string[], { ways, slashes }: Spelling): string {
  let at = 0
  const write = (text: string) =>
    Array.from(text, (one) => WRITE[ways[at++ % ways.length] as number]?.(one) ?? '').join('')
  return begin + names.map((text, i) => (i === 0 ? '' : slashes[i % slashes.length]) + write(text)).join('')
}

async function readFrom(listed: readonly string[], deny: readonly string[], uri: string) {
  const sent: unknown[] = []
  const resource = (own: string) =>
    defineResource({ uri: own, namespace: 'n', execute: (input) => (sent.push(input.uri), { contents: [] }) })
  const source = {
    name: 'n',
    namespaces: ['n'],
    tools: () => [...listed, 'memo:///other'].map(resource),
    unlisted: resource,
  }
  const policy = { allow: ['resource:*:*'], deny: deny.map((one) => `resource:n:${one}`) }
  const gate = createGate({ sources: [source], policy, onWarning: () => {} })
  const view = await gate.view({})
  const { status } = await view.call({ tool: `resource:n:${uri}`, input: { uri } })
  return { status, sent }
}

describe('spellings of one resource', () => {
  const names = fc.array(name, { minLength: 1, maxLength: 3 })
  const lists = fc.option(plainSpelling, { nil: undefined })

  it('are all denied by a rule about one of them', async () => {
    await fc.assert(
      fc.asyncProperty(start, names, plainSpelling, anySpelling, lists, async (begin, parts, rule, asked, list) => {
        const [denied, uri] = [spell(begin, parts, rule), spell(begin, parts, asked)]
        fc.pre(toNormalUri(denied) !== undefined)
        const listed = list === undefined ? [] : [spell(begin, parts, list)]
        const { status, sent } = await readFrom(listed, [denied], uri)
        assert.equal(status, 'refused', `${uri}, denied as ${denied}, listed as ${listed.join()}`)
        assert.deepEqual(sent, [])
      }),
      runs(500),
    )
  })

  it('reach the server in one spelling', async () => {
    await fc.assert(
      fc.asyncProperty(start, names, plainSpelling, anySpelling, lists, async (begin, parts, one, two, list) => {
        const listed = list === undefined ? [] : [spell(begin, parts, list)]
        fc.pre(toNormalUri(spell(begin, parts, one)) !== undefined)
        const answers = [
          await readFrom(listed, [], spell(begin, parts, one)),
          await readFrom(listed, [], spell(begin, parts, two)),
        ]
        const sent = new Set(answers.flatMap((answer) => answer.sent))
        assert.deepEqual([...sent], listed.length > 0 ? listed : [toNormalUri(spell(begin, parts, one))])
      }),
      runs(500),
    )
  })
})

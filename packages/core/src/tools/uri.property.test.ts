import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { runs } from '../../../testing/src/runs.ts'
import { isNormalUri, readingOf, toNormalUri } from './uri.ts'

/** Names without what servers read as something else than a character of a name. */
const name = fc
  .array(fc.constantFrom(...Array.from('ab.A1-_~!$&\'()*+,;=:@ %#?[]"é€😀')), { minLength: 1, maxLength: 5 })
  .map((characters) => characters.join(''))
  .filter((text) => !/^\.+$|%[0-9a-f]{2}|^(?:https?|wss?|ftp):/i.test(text.normalize('NFD')))

/** How one character is written, for a server that decodes it. */
const WRITE: readonly ((character: string) => string)[] = [
  (character) => (/[?#% ]/.test(character) ? encodeURIComponent(character) : character),
  encodeURIComponent,
  (character) => encodeURIComponent(character.normalize('NFD')),
  (character) =>
    Buffer.from(character)
      .toString('hex')
      .replaceAll(/../g, (byte) => `%${byte.toUpperCase()}`),
  (character) => Buffer.from(character).toString('hex').replaceAll(/../g, '%$&'),
  (character) => encodeURIComponent(encodeURIComponent(character)),
]
const SLASHES = ['/', '/', '/', '//', '/./', '%2F', '/x/../', '%5C']

/** Spells a path at random: mostly with one way of writing, so that normal spellings occur. */
const spelling = fc.record({
  writes: fc.array(fc.nat(WRITE.length - 1), { minLength: 1, maxLength: 3 }),
  slashes: fc.array(fc.constantFrom(...SLASHES), { minLength: 1, maxLength: 3 }),
  end: fc.constantFrom('', '', '', '/', '#', '?', '/.'),
})
type Spelling = typeof spelling extends fc.Arbitrary<infer Value> ? Value : never

function spell(start: string, names: readonly string[], { writes, slashes, end }: Spelling): string {
  let at = 0
  const write = (text: string) =>
    Array.from(text, (one) => WRITE[writes[at++ % writes.length] as number]?.(one) ?? '').join('')
  return start + names.map((text, i) => (i === 0 ? '' : slashes[i % slashes.length]) + write(text)).join('') + end
}

/** As a server writes a name that is in normal form. */
function written(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:2[46BC]|3[ABD]|40)/g, decodeURIComponent)
}

/** Codes at random what needs no code, and writes at random as it is what a query may hold so. */
function recode(text: string, way: () => number): string {
  let isQuery = false
  return text.replaceAll(/%..|[^/]|\//g, (one) => {
    const isDelimiter = one === '/' || one === '?' || (isQuery && /[&=]/.test(one))
    if (one === '?') isQuery = true
    if (isDelimiter || way() < 2) return one
    if (one.length === 1) return encode(one)
    const raw = /^%(?:2[4CF]|3[AF]|40)$/.test(one) && isQuery ? decodeURIComponent(one) : one.toLowerCase()
    return raw
  })
}

function encode(character: string): string {
  return `%${character.charCodeAt(0).toString(16)}`
}

const start = fc.constantFrom('file:///', 'notes://h/', 'https://h.de/', 'memo:///', 'notes:x/')

describe('isNormalUri', () => {
  it('takes at most one of all spellings of a name', () => {
    fc.assert(
      fc.property(
        start,
        fc.array(name, { minLength: 1, maxLength: 3 }),
        spelling,
        spelling,
        (begin, names, one, two) => {
          const [a, b] = [spell(begin, names, one), spell(begin, names, two)]
          if (isNormalUri(a) && isNormalUri(b)) assert.equal(a, b)
        },
      ),
      runs(5000),
    )
  })

  it('is the one form of all spellings of a name that are taken', () => {
    fc.assert(
      fc.property(
        start,
        fc.array(name, { minLength: 1, maxLength: 3 }),
        spelling,
        spelling,
        (begin, names, one, two) => {
          const [a, b] = [toNormalUri(spell(begin, names, one)), toNormalUri(spell(begin, names, two))]
          if (a !== undefined && b !== undefined) assert.equal(a, b)
          if (a !== undefined) assert.equal(toNormalUri(a), a)
        },
      ),
      runs(5000),
    )
  })

  it('is found from each spelling that differs by needless coding, in the query too', () => {
    const query = fc.array(name, { maxLength: 3 })
    fc.assert(
      fc.property(
        start,
        fc.array(name, { minLength: 1, maxLength: 3 }),
        query,
        fc.infiniteStream(fc.nat(4)),
        (begin, names, values, ways) => {
          fc.pre(!begin.startsWith('file:') || names.every((text) => !/[. ]$/.test(text)))
          const pairs = begin.startsWith('file:') ? [] : values.map((text) => encodeURIComponent(text))
          const path = begin + names.map((text) => written(text)).join('/')
          const normal = pairs.length > 0 ? `${path}?${pairs.join('&')}` : path
          fc.pre(isNormalUri(normal))
          const [head, tail] = [normal.slice(0, begin.length), normal.slice(begin.length)]
          const coded = head + recode(tail, () => ways.next().value ?? 0)
          assert.equal(coded.length > 2048 ? normal : toNormalUri(coded), normal, coded)
        },
      ),
      runs(5000),
    )
  })

  it('takes the normal spelling of every name, which reads as all others do', () => {
    fc.assert(
      fc.property(start, fc.array(name, { minLength: 1, maxLength: 3 }), spelling, (begin, names, one) => {
        fc.pre(!begin.startsWith('file:') || names.every((text) => !/[. ]$|:.*:\$/.test(text)))
        const normal = begin + names.map((text) => written(text)).join('/')
        assert.ok(isNormalUri(normal), normal)
        assert.equal(readingOf(normal), readingOf(spell(begin, names, { ...one, end: '' })))
      }),
      runs(2000),
    )
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import fc from 'fast-check'
import type { PauseState } from './state.ts'
import { createPauseStore, createTokens, fromStoredText, type TokenKey, toStoredText } from './store.ts'
import { runs } from '../../../testing/src/runs.ts'

const stateOf = (content = 'hello'): PauseState => ({
  version: 1,
  nonce: 'n',
  runId: 'r',
  identity: 'vera',
  app: undefined,
  tools: [['search', 'h']],
  policyRevision: 1,
  lineage: [],
  budgets: {},
  used: { steps: 1, calls: 0, timeMs: 0, tokens: 0 },
  usage: { input: 0, output: 0, total: 0 },
  level: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2]) },
          { type: 'text', text: content },
        ],
      },
    ],
    steps: [],
    instructions: undefined,
    context: undefined,
    pending: [],
  },
})

describe('createPauseStore', () => {
  const open = () => {
    const clock = manualClock()
    const state = memoryState({ clock })
    return { clock, state, pauses: createPauseStore(state) }
  }

  it('returns a pause once, to one of many callers, with bytes in its messages', async () => {
    const { state, pauses } = open()
    const id = await pauses.put(stateOf(), { expiresAt: 1e15 })
    assert.match(id, /^[A-Za-z0-9_-]{43}$/)
    assert.deepEqual((await pauses.get(id))?.level.messages, stateOf().level.messages)
    const taken = await Promise.all(Array.from({ length: 100 }, () => pauses.take(id)))
    assert.equal(taken.filter((pause) => pause !== undefined).length, 1)
    assert.equal(await pauses.get(id), undefined)
    assert.deepEqual(state.list(''), [])
  })

  it('keeps one that is larger than an entry of the store may be, and cuts no character', async () => {
    const { state, pauses } = open()
    for (const content of ['ä"\n🙂'.repeat(400_000), `x${'🙂'.repeat(500_000)}`, '\uD800'.repeat(300_000)]) {
      const id = await pauses.put(stateOf(content), { expiresAt: 1e15 })
      assert.ok((state.list('') as readonly unknown[]).length > 2)
      assert.deepEqual((await pauses.take(id))?.level.messages, stateOf(content).level.messages)
      assert.deepEqual(state.list(''), [])
    }
  })

  it('bounds the number of parts that a changed head can name', async () => {
    const { state } = open()
    let asked = 0
    const pauses = createPauseStore({ ...state, get: (key) => (asked++, state.get(key)) })
    const id = await pauses.put(stateOf(), { expiresAt: 1e15 })
    const [entry] = state.list('') as readonly { key: string; value: object }[]
    assert.ok(entry)
    for (const parts of [1e12, 1e6, -1, 1.5, '2', { length: 9 }, null]) {
      await state.set(entry.key, { ...entry.value, parts })
      assert.equal(await pauses.get(id), undefined)
    }
    assert.equal(asked, 7)
    assert.equal(await pauses.take(id), undefined)
  })

  it('returns nothing for a pause that was changed in the store, has expired, or never existed', async () => {
    const { clock, state, pauses } = open()
    const id = await pauses.put(stateOf(), { expiresAt: 1e15 })
    const [entry] = state.list('') as readonly { key: string; value: { text: string } }[]
    assert.ok(entry)
    await state.set(entry.key, { ...entry.value, text: entry.value.text.replace('vera', 'adam') })
    assert.equal(await pauses.get(id), undefined)
    assert.equal(await pauses.take(id), undefined)
    const second = await pauses.put(stateOf(), { expiresAt: clock.wallMs() + 10 })
    clock.advance(10)
    assert.equal(await pauses.take(second), undefined)
    assert.equal(await pauses.take('x'.repeat(43)), undefined)
  })
})

describe('toStoredText', () => {
  it('keeps all JSON, whatever its keys', () => {
    const key = fc.oneof(fc.string(), fc.constantFrom('~', '~bytes', '~url', '__proto__', 'constructor'))
    const { json } = fc.letrec((tie) => ({
      json: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue(),
        fc.array(tie('json'), { maxLength: 3 }),
        fc.array(fc.tuple(key, tie('json')), { maxLength: 2 }).map((entries) => Object.fromEntries(entries)),
      ),
    }))
    fc.assert(
      fc.property(json, (value) =>
        assert.deepEqual(fromStoredText(toStoredText(value)), JSON.parse(JSON.stringify(value))),
      ),
      runs(500, 500),
    )
  })

  it('keeps bytes and addresses', () => {
    const bytes = Buffer.from('xäy').subarray(1)
    const value = { data: bytes, more: [new Uint8Array([1, 2]).buffer], at: new URL('https://example.com/?q=1') }
    assert.deepEqual(fromStoredText(toStoredText(value)), {
      data: new Uint8Array(bytes),
      more: [new Uint8Array([1, 2])],
      at: new URL('https://example.com/?q=1'),
    })
  })

  it('leaves out what JSON leaves out, and stores what toJSON returns', () => {
    assert.deepEqual(fromStoredText(toStoredText({ a: undefined, b: () => 1, c: new Date(0), d: [undefined] })), {
      c: '1970-01-01T00:00:00.000Z',
      d: [null],
    })
  })

  it('refuses values without JSON', () => {
    const around: { self?: unknown } = {}
    around.self = around
    assert.throws(() => toStoredText(around), RangeError)
    assert.throws(() => toStoredText(1n), TypeError)
  })
})

const OLD: TokenKey = { id: 'old', secret: 'o'.repeat(32) }
const NEW: TokenKey = { id: 'new', secret: new Uint8Array(32).fill(7) }
const BINDING = { identity: 'vera', audience: 'here' }
const CLAIMS = { pause: 'p'.repeat(43), expiresAt: 1_000_000 }

describe('createTokens', () => {
  const tokens = createTokens([NEW, OLD])
  const token = tokens.sign(CLAIMS, BINDING)

  it('opens the tokens that it signed, for the same binding, until they expire', () => {
    assert.deepEqual(tokens.open(token, BINDING, 0), CLAIMS)
    assert.deepEqual(tokens.open(token, BINDING, CLAIMS.expiresAt - 1), CLAIMS)
    assert.equal(tokens.open(token, BINDING, CLAIMS.expiresAt), undefined)
  })

  it('opens nothing for another identity or deployment, also where the parts together are the same text', () => {
    assert.equal(tokens.open(token, { ...BINDING, identity: 'ada' }, 0), undefined)
    assert.equal(tokens.open(token, { ...BINDING, audience: 'there' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'verahe', audience: 're' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'here', audience: 'vera' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'evera', audience: 'her' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'era', audience: 'herev' }, 0), undefined)
  })

  it('rotates keys: the first one signs, all of them open, and one that was taken out does not', () => {
    const before = createTokens([OLD]).sign(CLAIMS, BINDING)
    assert.deepEqual(tokens.open(before, BINDING, 0), CLAIMS)
    assert.match(token, /^tgr1\.new\./)
    assert.equal(createTokens([NEW]).open(before, BINDING, 0), undefined)
    assert.equal(createTokens([{ ...OLD, secret: 'x'.repeat(32) }]).open(before, BINDING, 0), undefined)
  })

  it('does not accept one key in place of another with the same secret', () => {
    const twins = createTokens([OLD, { ...OLD, id: 'twin' }])
    const signed = twins.sign(CLAIMS, BINDING)
    assert.equal(twins.open(signed.replace('.old.', '.twin.'), BINDING, 0), undefined)
  })

  it('discloses nothing of the binding', () => {
    const [, , , , signature] = token.split('.')
    assert.equal(token, ['tgr1', 'new', CLAIMS.pause, CLAIMS.expiresAt.toString(36), signature].join('.'))
  })

  it('opens nothing that differs in any character', () => {
    const character = fc.constantFrom(...'ABab01_-.+/= \n\0ä'.split(''))
    fc.assert(
      fc.property(fc.nat(token.length), fc.nat(2), fc.string({ unit: character, maxLength: 3 }), (at, removed, put) => {
        const mutant = token.slice(0, at) + put + token.slice(at + removed)
        fc.pre(mutant !== token)
        assert.equal(tokens.open(mutant, BINDING, 0), undefined)
      }),
      runs(2000, 2000),
    )
  })

  it('opens no spelling of the same signature bytes', () => {
    const last = token.at(-1) as string
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = alphabet
      .split('')
      .filter(
        (other) =>
          other !== last &&
          Buffer.from(token.split('.')[4]?.slice(0, -1) + other, 'base64url').equals(
            Buffer.from(token.split('.')[4] as string, 'base64url'),
          ),
      )
    assert.ok(same.length > 0)
    for (const other of same) assert.equal(tokens.open(token.slice(0, -1) + other, BINDING, 0), undefined)
  })

  it('opens nothing that is no text', () => {
    for (const other of [undefined, null, 1, {}, [token], Buffer.from(token)])
      assert.equal(tokens.open(other, BINDING, 0), undefined)
  })

  it('refuses keys that are none', () => {
    assert.throws(() => createTokens([]), ConfigError)
    assert.throws(() => createTokens([{ id: 'a', secret: 'short' }]), /keys\[0\]\.secret: must have at least 32 bytes/)
    assert.throws(() => createTokens([{ id: 'a.b', secret: OLD.secret }]), /keys\[0\]\.id/)
    assert.throws(() => createTokens([OLD, OLD]), /"old" is the id of another key/)
    // Of each of these, an array of known bytes could be made.
    for (const secret of [64, { length: 64 }, Array.from({ length: 64 }, () => 0), undefined, null])
      assert.throws(() => createTokens([{ id: 'a', secret: secret as never }]), /keys\[0\]\.secret: must be a text or/)
  })

  it('keeps its keys to itself: a host may wipe its own, and none that changes theirs changes them', () => {
    const secret = new Uint8Array(32).fill(7)
    const keys = [{ id: 'a', secret }]
    const kept = createTokens(keys)
    secret.fill(0)
    keys.length = 0
    const signed = kept.sign(CLAIMS, BINDING)
    assert.deepEqual(kept.open(signed, BINDING, 0), CLAIMS)
    assert.equal(createTokens([{ id: 'a', secret }]).open(signed, BINDING, 0), undefined)
  })
})

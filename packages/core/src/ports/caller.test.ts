import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type Caller, callerKey, defineCaller, isDefinedCaller } from './caller.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('defineCaller', () => {
  it('gives a frozen copy that later changes do not reach', () => {
    const roles = ['viewer']
    const caller = defineCaller({ user: 'vera', roles, attributes: { plan: { name: 'pro' } } })
    roles.push('admin')
    assert.deepEqual(caller.roles, ['viewer'])
    assert.throws(() => Object.assign(caller, { user: 'omar' }), TypeError)
    assert.throws(() => Object.assign(caller.attributes?.['plan'] as object, { name: 'free' }), TypeError)
  })

  it('gives a defined caller back as it is', () => {
    const caller = defineCaller({ user: 'vera' })
    assert.equal(defineCaller(caller), caller)
  })

  const refused: readonly (readonly [caller: unknown, message: RegExp])[] = [
    [{ role: 'admin' }, /caller\.role: unknown field; did you mean "roles"\? The fields are user, tenant/],
    [JSON.parse('{"__proto__":{}}'), /caller\.__proto__: unknown field/],
    [{ session: '' }, /caller\.session must not be empty; leave it out for no session/],
    [{ chat: { id: 'c', typ: 'dm' } }, /caller\.chat\.typ: unknown field; did you mean "type"\?/],
    [Promise.resolve({ user: 'vera' }), /caller is a promise: await it first/],
    [new Map([['user', 'vera']]), /caller must be an object/],
    [Object.create({ roles: ['guest'] }), /caller\.roles must be a field of the object itself, not of its class/],
    [{ chat: Promise.resolve({ id: 'c' }) }, /caller\.chat is a promise: await it first/],
    [{ attributes: { plan: Promise.resolve('pro') } }, /caller\.attributes\.plan must be plain JSON/],
    [{ attributes: { since: new Date(0) } }, /caller\.attributes\.since must be plain JSON/],
    [{ user: 7 }, /caller\.user must be a string/],
    [{ user: null }, /caller\.user must be a string/],
    [{ roles: 'admin' }, /caller\.roles must be a list of strings/],
    [{ roles: ['admin', 7] }, /caller\.roles\[1\] must be a string/],
    [{ chat: 'c1' }, /caller\.chat must be an object/],
    [{ chat: { type: 'dm' } }, /caller\.chat\.id must be a string/],
    [{ attributes: [] }, /caller\.attributes must be an object/],
    [{ attributes: { f: () => 1 } }, /caller\.attributes\.f must be plain JSON/],
    [{ attributes: { n: Number.NaN } }, /caller\.attributes\.n must be plain JSON/],
    [null, /caller must be an object/],
    [[], /caller must be an object/],
    ['vera', /caller must be an object/],
  ]
  for (const [caller, message] of refused) {
    it(`refuses ${JSON.stringify(caller)}, and names what is wrong`, () => {
      assert.throws(() => defineCaller(caller as Caller), { code: 'caller_invalid', message })
    })
  }

  it('refuses attributes that are nested too deeply', () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)])
    assert.throws(() => defineCaller({ attributes: { a: nested(40) } }), /nested too deeply/)
  })
})

describe('isDefinedCaller', () => {
  const vera = defineCaller({ user: 'vera', roles: ['admin'], attributes: { plan: 'pro' } })

  it('is true for what defineCaller returned', () => {
    assert.equal(isDefinedCaller(vera), true)
  })

  const copies: readonly (readonly [how: string, copy: unknown])[] = [
    ['JSON', JSON.parse(JSON.stringify(vera))],
    ['structuredClone', structuredClone(vera)],
    ['a spread', { ...vera }],
    ['Object.create', Object.create(vera)],
    ['Object.assign', Object.assign({}, vera)],
  ]
  for (const [how, copy] of copies)
    it(`is false for a copy made by ${how}`, () => {
      assert.equal(isDefinedCaller(copy), false)
    })

  it('is false for the object that defineCaller was given, before and after', () => {
    const given = { user: 'vera' }
    assert.equal(isDefinedCaller(given), false)
    defineCaller(given)
    callerKey(given)
    assert.equal(isDefinedCaller(given), false)
  })

  it('is false for anything else', () => {
    for (const value of [undefined, null, 'vera', 7, [], () => vera, vera.attributes])
      assert.equal(isDefinedCaller(value), false)
  })
})

describe('callerKey', () => {
  const text = fc.constantFrom('', 'a', 'b', 'a,b', '"', '\\', '\0', 'null')
  const callers: fc.Arbitrary<Caller> = fc.record(
    {
      user: text,
      tenant: text,
      roles: fc.uniqueArray(text, { maxLength: 3 }),
      scopes: fc.uniqueArray(text, { maxLength: 2 }),
      session: text.filter((id) => id !== ''),
      chat: fc.record({ id: text, type: text }, { requiredKeys: ['id'] }),
      agent: text,
      client: text,
      actor: text,
      actChain: fc.array(text, { maxLength: 3 }),
      attributes: fc.dictionary(text, fc.oneof(text, fc.constant(null), fc.record({ x: text, y: text }))),
    },
    { requiredKeys: [] },
  )

  it('is the same for the same caller, whatever the order of fields, roles and attributes', () => {
    fc.assert(
      fc.property(callers, (caller) => {
        const { roles, attributes } = caller
        const other: Caller = {
          ...Object.fromEntries(Object.entries(caller).toReversed()),
          ...(roles && { roles: roles.toReversed() }),
          ...(attributes && { attributes: Object.fromEntries(Object.entries(attributes).toReversed()) }),
        }
        assert.equal(callerKey(other), callerKey(caller))
      }),
    )
  })

  it('is another for another caller', () => {
    fc.assert(
      fc.property(callers, callers, (a, b) => {
        const same = JSON.stringify(defineCaller(a)) === JSON.stringify(defineCaller(b))
        if (callerKey(a) === callerKey(b)) assert.deepEqual(defineCaller(a), defineCaller(b))
        else assert.equal(same && Object.keys(a).join() === Object.keys(b).join(), false)
      }),
      runs(1000, 1000),
    )
  })

  it('tells an absent field from an empty one, and fields from each other', () => {
    const keys = [{}, { user: '' }, { tenant: '' }, { roles: [] }, { user: 'a' }, { session: 'a' }].map(callerKey)
    assert.equal(new Set(keys).size, keys.length)
  })
})

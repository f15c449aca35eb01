import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { JSON_BOUNDS, toJsonText } from '@toolgate/values/json'
import fc from 'fast-check'
import { ClientGone, parseBody, readBody } from './body.ts'
import { RpcFault, type RpcRule } from './protocol.ts'

/** Returns a request with these chunks; `announced` is its Content-Length. */
function incoming(chunks: readonly (string | Buffer)[], announced?: number): IncomingMessage {
  const stream = Readable.from(chunks.map((chunk) => Buffer.from(chunk)))
  const headers = announced === undefined ? {} : { 'content-length': String(announced) }
  return Object.assign(stream, { headers }) as never
}

function breaks(rule: RpcRule, message: RegExp) {
  return (error: unknown) => error instanceof RpcFault && error.rule === rule && message.test(error.message)
}

const parses = (text: string) => assert.deepEqual(parseBody(text), JSON.parse(text))
const refusesTwice = (text: string) => assert.throws(() => parseBody(text), breaks('body_not_message', /occurs twice/))

describe('readBody', () => {
  it('returns the text of all chunks, even of a character that spans two', async () => {
    const bytes = Buffer.from('{"größe":"🙂"}')
    const chunks = Array.from(bytes, (byte) => Buffer.from([byte]))
    assert.equal(await readBody(incoming(chunks)), bytes.toString())
  })

  it('accepts a body of exactly the limit', async () => {
    assert.equal(await readBody(incoming(['12', '34']), 4), '1234')
    assert.equal(await readBody(incoming(['1234'], 4), 4), '1234')
  })

  it('refuses one byte more, announced or received', async () => {
    const tooLarge = breaks('body_too_large', /larger than 4 bytes/)
    await assert.rejects(readBody(incoming(['12345'], 5), 4), tooLarge)
    await assert.rejects(readBody(incoming(['12', '34', '5']), 4), tooLarge)
  })

  it('does not read a body whose announced size is too large', async () => {
    const request = incoming(['12345'], 5)
    await assert.rejects(readBody(request, 4))
    assert.equal(request.readableFlowing, null)
  })

  it('stops at the limit if the body never ends', async () => {
    let given = 0
    const endless = Readable.from(
      (function* () {
        for (;;) yield Buffer.alloc(1024, (given += 1024) && 0x20)
      })(),
    )
    await assert.rejects(readBody(Object.assign(endless, { headers: {} }) as never, 10_000))
    assert.ok(given < 100_000, `${given} bytes were taken`)
    endless.destroy()
  })

  it('refuses bytes that are not UTF-8', async () => {
    const notUtf8 = breaks('body_not_json', /not UTF-8/)
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82]])
      await assert.rejects(readBody(incoming([Buffer.from(bytes)])), notUtf8)
  })

  it('rejects if the client disconnects in the middle', async () => {
    const request = Object.assign(new Readable({ read() {} }), { headers: {} })
    const body = readBody(request as never)
    request.push('{"a"')
    request.destroy()
    await assert.rejects(body, ClientGone)
  })
})

describe('parseBody', () => {
  it('returns the parsed JSON', () => {
    parses('{"a":[1,{"b":null}],"c":"d"}')
    parses('0')
    parses(' [ ] ')
  })

  it('ignores a byte order mark', () => {
    assert.deepEqual(parseBody('\ufeff{}'), {})
  })

  it('refuses a text that is not JSON', () => {
    for (const text of ['', '{', '{"a":1,}', "{'a':1}", '{"a":1} {}', '{"a":NaN}', ']'])
      assert.throws(() => parseBody(text), breaks('body_not_json', /not JSON/), text)
  })

  it('refuses a key that occurs twice in one object, at any place', () => {
    refusesTwice('{"method":"ping","method":"tools/call"}')
    refusesTwice('{"a":{"b":1,"c":2,"b":3}}')
    refusesTwice('[[{"a":[{"x":{},"x":{}}]}]]')
    refusesTwice('{"a":1,"b":{"a":1},"a":1}')
  })

  it('refuses it in every spelling', () => {
    refusesTwice(String.raw`{"method":1,"\u006dethod":2}`)
    refusesTwice(String.raw`{"\u006Dethod":1,"\u006dethod":2}`)
    refusesTwice(String.raw`{"a\/b":1,"a/b":2}`)
    refusesTwice(String.raw`{"\"":1,"\u0022":2}`)
    refusesTwice('{"":1,"":2}')
    refusesTwice('{"🙂":1,"\\ud83d\\ude42":2}')
  })

  it('refuses it for names that objects inherit', () => {
    for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
      refusesTwice(`{"${key}":1,"${key}":2}`)
  })

  it('accepts keys that only look alike, and one key in two objects', () => {
    parses('{"a":1,"A":2,"\u0430":3,"a ":4}')
    parses('{"é":1,"e\u0301":2}')
    parses('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}')
  })

  it('keeps __proto__ as a key like any other', () => {
    const value = parseBody('{"__proto__":{"method":"tools/call"},"a":{"__proto__":1}}') as object
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
    assert.deepEqual(Object.keys(value), ['__proto__', 'a'])
  })

  it('treats colons, quotes, brackets and backslashes inside strings as text', () => {
    parses(String.raw`{"a:b":"c:d","e":"\":\"","f":"\\","g":"{[:"}`)
    parses(String.raw`["\\\\",":",":\\\":"]`)
    parses(`{"a":"${'['.repeat(200)}"}`)
  })

  it('accepts 64 levels and refuses the 65th, in arrays, objects and both', () => {
    const arrays = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    const objects = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`
    const both = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`
    const tooDeep = breaks('body_not_message', /more than 64 levels/)
    for (const nest of [arrays, objects, both]) {
      parses(nest(64))
      assert.throws(() => parseBody(nest(66)), tooDeep)
    }
    assert.throws(() => parseBody(arrays(65)), tooDeep)
    parses(`[${'[],'.repeat(1000)}[]]`)
  })

  it('refuses a body of brackets only without parsing it', (t) => {
    const parse = t.mock.method(JSON, 'parse')
    assert.throws(() => parseBody('['.repeat(1_000_000)), breaks('body_not_message', /more than 64 levels/))
    assert.equal(parse.mock.callCount(), 0)
  })

  it('refuses a body of too many values, too many keys or too long a key without parsing it', (t) => {
    const { values, keys, keyLength } = JSON_BOUNDS.request
    const many = (count: number, make: (i: number) => string) => Array.from({ length: count }, (_, i) => make(i)).join()
    const bodies: readonly [string, RegExp][] = [
      [`{${many(keys + 1, (i) => `"k${i}":1`)}}`, /^The body holds more than 10000 keys\.$/],
      [`[${many(values, () => '{}')}]`, /^The body holds more than 50000 values\.$/],
      [`[${many(values + 1, () => '1')}]`, /^The body holds more than 50000 values\.$/],
      [`{"${'k'.repeat(keyLength + 1)}":1}`, /^The body holds a key of more than 4096 characters\.$/],
    ]
    parses(`{${many(keys, (i) => `"k${i}":1`)}}`)
    parses(`[${many(values - 2, () => '1')}]`)
    parses(`{"${'k'.repeat(keyLength)}":"${'v'.repeat(1_000_000)}"}`)
    const parse = t.mock.method(JSON, 'parse')
    for (const [text, message] of bodies)
      assert.throws(() => parseBody(text), breaks('body_not_message', message), message.source)
    assert.equal(parse.mock.callCount(), 0)
  })

  const nested = fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' })

  it('property: accepts every value as JSON.stringify writes it, and changes nothing', () => {
    fc.assert(
      fc.property(nested, fc.constantFrom(undefined, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent)
        const body = parseBody(text)
        assert.equal(toJsonText(body, indent), text)
        if (!/\d{16}/.test(text)) assert.deepEqual(body, JSON.parse(text))
      }),
    )
  })

  it('property: finds a key that is written twice, at any depth, in any spelling', () => {
    const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__proto__', 'method', 'a:b', '"', '\\'))
    const steps = fc.array(fc.oneof(fc.constant('array'), key), { maxLength: 20 })
    fc.assert(
      fc.property(key, nested, nested, steps, fc.array(fc.boolean()), (twice, one, other, path, escapes) => {
        const spelled = (name: string) => `"${escapeSome(name, escapes)}"`
        const inner = `{${JSON.stringify(twice)}:${JSON.stringify(one)},${spelled(twice)}:${JSON.stringify(other)}}`
        const text = path.reduce(
          (value, step) => (step === 'array' ? `[0,${value}]` : `{${JSON.stringify(step)}:${value}}`),
          inner,
        )
        JSON.parse(text)
        refusesTwice(text)
      }),
    )
  })
})

/** Writes each unit of a string plainly or as `\uXXXX`, as chosen. Units that JSON cannot write plainly are escaped. */
function escapeSome(text: string, choices: readonly boolean[]): string {
  return Array.from({ length: text.length }, (_, i) => {
    const unit = text.charCodeAt(i)
    const plain = unit >= 0x20 && unit !== 0x22 && unit !== 0x5c && (unit < 0xd800 || unit > 0xdfff)
    return plain && !choices[i] ? text[i] : `\\u${unit.toString(16).padStart(4, '0')}`
  }).join('')
}

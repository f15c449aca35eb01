import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'node:test'
import { capOutput, cutText, outputText, sizeOf, isToolError, toolErrorOf } from './output.ts'
import { matchesAuditQuery, outcomeOfRecord } from '@toolgate/core/audit'
import { createGate, memoryAudit } from '@toolgate/core'
import type { CallTrace } from '@toolgate/core/internal'

const boom = () => {
  throw new Error('boom')
}
const long = (length: number) => 'x'.repeat(length)

/** The size of what JSON would write, its escapes aside. */
function jsonSize(value: unknown): number {
  const plain = JSON.stringify(value, (_, item: unknown) =>
    typeof item === 'string' ? item.replaceAll(/[^ -~]|["\\]/g, 'x') : item,
  )
  return plain?.length ?? 0
}

describe('capOutput', () => {
  it('returns an output under the cap as it is', () => {
    const outputs = [
      'short',
      long(1000),
      7,
      null,
      undefined,
      true,
      10n,
      Symbol('s'),
      boom,
      new Date(),
      new Map([[1, 2]]),
      new Uint8Array(10),
      new URL('http://a.test'),
      { content: [{ type: 'text', text: 'hello' }], isError: false },
      Object.create(null),
    ]
    for (const output of outputs) {
      const capped = capOutput(output, 1000)
      assert.deepEqual([capped.cut, Object.is(capped.output, output)], [false, true], typeof output)
    }
  })

  it('cuts a text at the cap, with a marker that says its length', () => {
    const { output, cut } = capOutput(long(1001), 1000)
    assert.ok(cut && typeof output === 'string')
    assert.equal(output.length, 1000)
    assert.match(output, /^x{900,}… \[cut: 1001 characters\]$/)
  })

  it('cuts between characters', () => {
    for (const max of [100, 101]) {
      const { output } = capOutput('😀'.repeat(1000), max)
      assert.ok(typeof output === 'string' && output.isWellFormed() && output.length >= max - 1)
    }
  })

  it('keeps the shape of an MCP result, and of its small parts all', () => {
    const result = {
      isError: true,
      content: [
        { type: 'text', text: long(100_000) },
        { type: 'text', text: 'and this' },
        { type: 'image', data: long(50_000), mimeType: 'image/png' },
        { type: 'resource', resource: { uri: 'file:///a', blob: long(50_000) } },
      ],
      _meta: { k: [1, null, true] },
    }
    const { output, cut } = capOutput(result, 10_000)
    assert.ok(cut && jsonSize(output) <= 10_000)
    const { content, ...rest } = output as typeof result
    assert.deepEqual(rest, { isError: true, _meta: { k: [1, null, true] } })
    assert.match(content[0]?.text ?? '', /^x{9000,}… \[cut: 100000 characters\]$/)
    assert.deepEqual(content.slice(1), [
      { type: 'text', text: 'and this' },
      { type: 'text', text: '[cut: 50000 characters of image]' },
      {
        type: 'resource',
        resource: { uri: 'file:///a', mimeType: 'text/plain', text: '[cut: 50000 characters of binary data]' },
      },
    ])
  })

  it('uses the room there is', () => {
    for (const max of [1000, 10_000, 100_000]) {
      const size = jsonSize(capOutput({ a: long(1_000_000), b: long(1_000_000) }, max).output)
      assert.ok(size <= max && size > max * 0.9, `${size} of ${max}`)
    }
  })

  it('shortens lists, with a last item of the kind of the others', () => {
    const lists: readonly (readonly [item: unknown, last: unknown])[] = [
      [7, /^\[cut: \d+ of 100000 items\]$/],
      ['seven', /^\[cut: \d+ of 100000 items\]$/],
      [{ type: 'text', text: 'seven' }, /^\{"type":"text","text":"\[cut: \d+ of 100000 items\]"\}$/],
      [{ n: 7 }, /^\{"\[cut\]":"\[cut: \d+ of 100000 items\]"\}$/],
    ]
    for (const [item, last] of lists) {
      const { output } = capOutput({ list: Array(100_000).fill(item), ok: true }, 10_000)
      const { list, ok } = output as { list: unknown[]; ok: boolean }
      const marker = list.at(-1)
      assert.match(typeof marker === 'string' ? marker : JSON.stringify(marker), last as RegExp)
      assert.deepEqual([list[0], ok], [item, true])
      assert.ok(jsonSize(output) <= 10_000 && jsonSize(output) > 8500)
    }
  })

  it('shortens objects of very many fields, and says so', () => {
    const { output } = capOutput(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i])), 10_000)
    assert.match(String((output as Record<string, unknown>)['[cut]']), /^\[cut: \d+ of 100000 fields\]$/)
    assert.ok(jsonSize(output) <= 10_000)
  })

  it('takes as many levels as fit of a tree that is wide at every level', () => {
    const tree = (depth: number): unknown =>
      depth === 0 ? 'leaf' : Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`k${i}`, tree(depth - 1)]))
    const { output, cut } = capOutput({ isError: false, structuredContent: tree(4) }, 10_000)
    assert.ok(cut && jsonSize(output) <= 10_000)
    assert.equal(Object.keys((output as { structuredContent: object }).structuredContent).length, 12)
  })

  it('counts binary data, and puts a marker in its place', () => {
    for (const data of [
      new Uint8Array(50_000),
      Buffer.alloc(50_000),
      new ArrayBuffer(50_000),
      new Blob([long(50_000)]),
    ]) {
      assert.equal(capOutput({ data }, 50_100).cut, false)
      assert.deepEqual(capOutput({ data, n: 1 }, 1000), {
        output: { data: '[cut: 50000 bytes of binary data]', n: 1 },
        cut: true,
      })
    }
  })

  it('copies no cycle, and no nest that is too deep', () => {
    const cyclic: Record<string, unknown> = { name: 'a' }
    cyclic['self'] = [cyclic]
    assert.deepEqual(capOutput(cyclic, 1000), { output: { name: 'a', self: ['[cut: it holds itself]'] }, cut: true })
    let deep: unknown = 'end'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const { output, cut } = capOutput(deep, 1000)
    assert.ok(cut && JSON.stringify(output).includes('nested too deeply'))
  })

  it('takes time by the cap, not by the size of the output', () => {
    let shared: unknown = 'x'
    for (let i = 0; i < 200; i++) shared = [shared, shared]
    const outputs = [
      shared,
      long(50_000_000),
      { text: long(50_000_000) },
      // oxlint-disable-next-line unicorn/no-new-array -- nothing but holes
      { sparse: new Array(2 ** 32 - 1) },
      Array.from({ length: 1_000_000 }, () => ({ a: 1 })),
      // oxlint-disable-next-line unicorn/new-for-builtins, no-new-wrappers -- what a tool may give
      new String(long(50_000_000)),
      { n: 10n ** 100_000n },
      (1n << 10_000_000n) - 1n,
    ]
    for (const output of outputs) {
      const capped = capOutput(output, 10_000)
      assert.ok(capped.cut && jsonSize(capped.output) <= 10_002)
    }
  })

  it('keeps nothing of a text that it was cut from', () => {
    const { output } = capOutput({ text: `\uFEFF\uD800${long(1000)}` }, 500)
    const { text } = output as { text: string }
    assert.ok(text.startsWith('\uFEFF') && text.isWellFormed())
  })

  it('leaves out parts that throw when they are read', () => {
    const proxy = new Proxy({}, { ownKeys: boom, getPrototypeOf: boom, get: boom })
    const outputs = [
      {
        a: 1,
        get b() {
          return boom()
        },
      },
      { a: 1, b: proxy },
      { a: 1, b: new Proxy([], { get: boom }) },
    ]
    for (const output of outputs) {
      const capped = capOutput({ output, rest: 1 }, 1000)
      assert.ok(capped.cut)
      assert.match(JSON.stringify(capped.output), /it cannot be read.*"rest":1/)
    }
  })

  it('copies instances of classes as what they hold', () => {
    class Page {
      title = 'a'
      text = long(10_000)
      get hidden() {
        return boom()
      }
      toJSON() {
        return boom()
      }
    }
    const at = new Date(0)
    const { output } = capOutput({ page: new Page(), at, error: new Error('no'), map: new Map([[1, 2]]) }, 1000)
    const { page, ...rest } = output as { page: { title: string; text: string } }
    assert.deepEqual([page.title, Object.keys(page)], ['a', ['title', 'text']])
    assert.deepEqual(rest, { at, error: 'no', map: '[cut: 1 entries]' })
  })

  it('counts what JSON is made of, what an error carries, and what is in maps and sets', () => {
    const text = long(10_000)
    const outputs: readonly unknown[] = [
      { toJSON: () => text },
      { toJSON: () => ({ text }) },
      new URL(`http://localhost/${text}`),
      Object.assign(new Error('no'), { response: text }),
      new Map([['a', text]]),
      new Map([[text, 1]]),
      new Set([[text]]),
    ]
    for (const output of outputs) {
      const capped = capOutput(output, 1000)
      assert.ok(capped.cut)
      assert.ok(JSON.stringify(capped.output).length <= 1000)
    }
    const url = capOutput({ url: new URL(`http://localhost/${text}`) }, 1000).output as { url: string }
    assert.match(url.url, /^http:\/\/localhost\/x+… \[cut: 10017 characters\]$/)
    const itself = {
      toJSON() {
        return this
      },
    }
    assert.equal(capOutput(itself, 1000).output, itself)
  })

  it('keeps a field whose name is __proto__ a field', () => {
    const { output } = capOutput(JSON.parse(`{"__proto__": {"admin": true}, "text": "${long(1000)}"}`), 500)
    assert.ok(Object.hasOwn(output as object, '__proto__'))
    assert.equal((output as { admin?: boolean }).admin, undefined)
  })

  it('never exceeds the cap, throws or changes what it is given, for any JSON and any cap', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ minLength: 200, maxLength: 2000 }))
    const json = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(
          text,
          fc.integer(),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.boolean(),
          fc.constant(null),
        ),
        fc.array(tie('value'), { maxLength: 12 }),
        fc.dictionary(fc.string(), tie('value'), { maxKeys: 12 }),
      ),
    })).value
    fc.assert(
      fc.property(json, fc.integer({ min: 0, max: 5000 }), (value, max) => {
        const before = JSON.stringify(value)
        const { output, cut } = capOutput(value, max)
        assert.equal(JSON.stringify(value), before)
        if (cut)
          assert.ok((typeof output === 'string' ? output.length : jsonSize(output)) <= max, JSON.stringify(output))
        else assert.equal(output, value)
        if (!cut && typeof value !== 'string') assert.ok(jsonSize(value) <= max)
        assert.equal(cut, typeof value === 'string' ? value.length > max : sizeOf(value, max) > max)
      }),
    )
  })
})

describe('outputText', () => {
  it('returns a text as it is, and JSON for the rest', () => {
    assert.equal(outputText('hi'), 'hi')
    assert.equal(outputText({ a: [1] }), '{"a":[1]}')
    assert.deepEqual(
      [undefined, boom, Symbol('s')].map((output) => outputText(output)),
      ['', '', ''],
    )
  })

  it('has a text for values that JSON cannot write', () => {
    const cyclic: Record<string, unknown> = { n: 1 }
    cyclic['self'] = cyclic
    assert.equal(outputText(cyclic), '{"n":1,"self":"[cut: it holds itself]"}')
    assert.equal(outputText(12n), '12')
    assert.equal(outputText({ n: 12n }), '{"n":12}')
    assert.equal(outputText({ a: 1, toJSON: boom }), '{"a":1}')
    assert.equal(outputText(Object.create({ toJSON: boom })), '{}')
    assert.equal(
      outputText(new Proxy({}, { get: boom, ownKeys: boom, getPrototypeOf: boom })),
      '"[cut: it cannot be read]"',
    )
  })

  it('is bounded, whatever an output makes of itself', () => {
    assert.equal(outputText(long(5000), 1000).length, 1000)
    assert.ok(outputText({ text: long(5000) }, 1000).length <= 1000)
    assert.ok(outputText({ toJSON: () => long(50_000_000) }, 1000).length <= 1000)
    assert.ok(outputText((1n << 10_000_000n) - 1n, 1000).length <= 1000)
    assert.ok(outputText({ text: '\u0000'.repeat(900) }, 1000).length <= 1000)
  })
})

describe('cutText', () => {
  it('has no room for a marker in a few characters', () => {
    assert.deepEqual(
      [cutText('hello', 5), cutText('hello', 3), cutText('hello', 0), cutText('😀😀', 1)],
      ['hello', 'hel', '', ''],
    )
  })
})

const FAILED = { content: [{ type: 'text', text: 'no such file: token=abcdefghijklmnop1234' }], isError: true }

/** A call of a tool that answers so. */
async function call(output: unknown) {
  const audit = memoryAudit()
  const ends: Parameters<CallTrace['end']>[0][] = []
  const gate = createGate({
    tools: { 'files:read': { execute: () => output } },
    audit,
    limits: '*:1/60',
    telemetry: {
      startCall: () => ({ traceId: undefined, within: (work) => work(), end: (end) => void ends.push(end) }),
    },
  })
  const view = await gate.view({ user: 'vera' })
  const outcome = await view.call({ tool: 'files:read', input: {} })
  const second = await view.call({ tool: 'files:read', input: {} })
  return { outcome, second, ends, records: audit.records, last: audit.records[1] }
}

describe('a tool that answers an MCP result with isError', () => {
  it('is recorded as failed, with what it said, redacted', async () => {
    const { records, last } = await call(FAILED)
    assert.equal(records.length, 3, 'a call, its end, and the refused second call')
    assert.ok(last)
    assert.deepEqual([last.event, last.is_error, last.reason], ['tool_result', true, 'tool_error'])
    assert.match(last.error ?? '', /^no such file: token=/)
    assert.doesNotMatch(last.error ?? '', /abcdefghijklmnop1234/)
    assert.equal(outcomeOfRecord(last), 'failed')
    assert.equal(matchesAuditQuery(last, { outcome: 'failed' }), true)
    assert.equal(matchesAuditQuery(last, { outcome: 'done' }), false)
  })

  it('returns its result to the caller unchanged', async () => {
    const { outcome } = await call(FAILED)
    assert.equal(outcome.status, 'done')
    assert.equal(outcome.status === 'done' && outcome.output, FAILED)
    assert.equal(outcome.status === 'done' && outcome.isError, true)
  })

  it('is counted as failed by telemetry', async () => {
    const { ends } = await call(FAILED)
    assert.deepEqual([ends[0]?.status, ends[0]?.code, ends[0]?.output], ['failed', 'tool_error', FAILED])
  })

  it('has used its limit: it ran', async () => {
    const { second } = await call(FAILED)
    assert.match(second.text, /rate limited \(1\/60\)/)
  })

  it('has an error in its record also where it said nothing', async () => {
    for (const silent of [
      { isError: true },
      { isError: true, content: [] },
      { isError: true, content: [{ type: 'image' }] },
    ])
      assert.equal((await call(silent)).last?.error, 'the tool answered with an error')
  })
})

describe('a tool that answers anything else', () => {
  it('is done, and its record has no is_error', async () => {
    for (const output of [
      { ...FAILED, isError: false },
      { content: [] },
      'isError',
      { isError: 'true' },
      null,
      [FAILED],
    ]) {
      const { outcome, last, ends } = await call(output)
      assert.deepEqual([last?.event, last?.error, 'is_error' in (last ?? {})], ['tool_result', undefined, false])
      assert.equal(outcome.status === 'done' && outcome.isError, false)
      assert.equal(ends[0]?.status, 'done')
    }
  })
})

describe('isToolError', () => {
  it('takes only a result of MCP for one, and survives outputs that throw', () => {
    assert.equal(isToolError(FAILED), true)
    assert.equal(isToolError({ isError: true, content: 'text' }), false)
    assert.equal(isToolError(Object.create({ isError: true })), false)
    const hostile = new Proxy({}, { getOwnPropertyDescriptor: () => assert.fail() })
    assert.equal(isToolError(hostile), false)
  })
})

describe('toolErrorOf', () => {
  it('joins the texts and ends after enough of them', () => {
    const text = (line: string) => ({ type: 'text', text: line })
    assert.equal(toolErrorOf({ isError: true, content: [text('a'), { type: 'image' }, text('b')] }), 'a\nb')
    const many = Array.from({ length: 100_000 }, () => text('x'.repeat(100)))
    assert.ok((toolErrorOf({ isError: true, content: many }) ?? '').length < 20_000)
  })
})

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import { createGate } from '../gate/gate.ts'
import type { Policy } from '../policy/policy.ts'
import type { StandardSchema } from './standard-schema.ts'
import { defineTool } from './tool.ts'

/** The same schema three times: a path, and a depth from 1 that is 2 where it is absent. */
const libraries: readonly (readonly [name: string, schema: StandardSchema])[] = [
  ['zod', z.object({ path: z.string(), depth: z.number().min(1).default(2) })],
  ['arktype', type({ path: 'string', depth: 'number >= 1 = 2' })],
  [
    'valibot',
    toStandardJsonSchema(v.object({ path: v.string(), depth: v.optional(v.pipe(v.number(), v.minValue(1)), 2) })),
  ],
]

async function callOf(inputSchema: StandardSchema, input: unknown, policy: Policy = {}) {
  const ran: unknown[] = []
  const tool = defineTool({ name: 'read', inputSchema, execute: (given) => void ran.push(given) })
  const view = await createGate({ tools: [tool], policy }).view({})
  return { outcome: await view.call({ tool: 'read', input }), ran }
}

describe('defineTool with a Standard Schema', () => {
  for (const [name, schema] of libraries) {
    describe(name, () => {
      it('tells models the JSON Schema of what it takes', () => {
        const { inputSchema } = defineTool({ name: 'read', inputSchema: schema })
        const { type: kind, required, properties } = inputSchema as Record<string, unknown>
        assert.deepEqual([kind, required], ['object', ['path']])
        const { path, depth } = properties as Record<string, Record<string, unknown>>
        assert.deepEqual([path?.['type'], depth?.['type'], depth?.['minimum']], ['string', 'number', 1])
      })

      it('validates each input itself, and what it gives is what runs', async () => {
        const { outcome, ran } = await callOf(schema, { path: 'a' })
        assert.deepEqual([outcome.status, ran], ['done', [{ path: 'a', depth: 2 }]])
      })

      it('refuses an input with the pointer of what is wrong', async () => {
        const { outcome, ran } = await callOf(schema, { path: 'a', depth: 0 })
        assert.match(outcome.text, /^TOOL_CALL_BLOCKED: invalid input at "\/depth": /)
        assert.deepEqual([outcome.status, ran], ['refused', []])
      })
    })
  }

  it('decides by what the schema gives, not by what was sent', async () => {
    const schema = z.object({ path: z.string().transform((path) => `/etc/${path}`) })
    const policy: Policy = { deny: [{ match: 'read', input: "!within(input.path, '/workspace')" }] }
    const { outcome, ran } = await callOf(schema, { path: 'passwd' }, policy)
    assert.deepEqual([outcome.status, ran], ['refused', []])
  })

  it('freezes what the schema gives', async () => {
    const { ran } = await callOf(z.object({ tags: z.array(z.string()).default([]) }), {})
    assert.deepEqual([Object.isFrozen(ran[0]), Object.isFrozen((ran[0] as { tags: object }).tags)], [true, true])
  })

  it('takes the JSON Schema of what an output schema gives', () => {
    const { outputSchema } = defineTool({ name: 'a', outputSchema: z.object({ size: z.number().default(1) }) })
    assert.deepEqual(outputSchema?.['required'], ['size'])
  })

  describe('that returns what JSON cannot express', () => {
    const came = { at: '2026-01-01', tags: ['a', 'b'], link: 'https://x.org/a', path: 'passwd', size: '5' }
    const schema = z.object({
      at: z.string().transform((text) => new Date(text)),
      tags: z.array(z.string()).transform((tags) => new Set(tags)),
      link: z.string().transform((text) => new URL(text)),
      path: z.string().transform((path) => `/etc/${path}`),
      size: z.coerce.number(),
      depth: z.number().default(2),
    })
    const decided = { ...came, path: '/etc/passwd', size: 5, depth: 2 }
    const runs = {
      at: new Date('2026-01-01'),
      tags: new Set(['a', 'b']),
      link: new URL('https://x.org/a'),
      path: '/etc/passwd',
      size: 5,
      depth: 2,
    }

    it('gives the tool what the schema returned', async () => {
      const { outcome, ran } = await callOf(schema, came)
      assert.deepEqual([outcome.status, ran], ['done', [runs]])
    })

    it('decides such a part as it came, and each other part as the schema returned it', async () => {
      for (const rule of [
        "input.at > '2025'",
        "'b' in input.tags",
        "input.path == '/etc/passwd'",
        'input.depth == 2',
      ]) {
        const { outcome, ran } = await callOf(schema, came, { deny: [{ match: 'read', input: rule }] })
        assert.deepEqual([outcome.status, ran], ['refused', []], rule)
      }
    })

    it('binds an approval to it', async () => {
      const ran: unknown[] = []
      const tool = defineTool({ name: 'read', inputSchema: schema, execute: (given) => void ran.push(given) })
      const gate = createGate({ tools: [tool], policy: { ask: ['read'] } })
      const caller = { user: 'vera', roles: ['approver'] }
      const view = await gate.view(caller)
      const waiting = await view.call({ tool: 'read', input: came })
      assert.ok(waiting.status === 'waiting')
      assert.deepEqual(waiting.approval.input, decided)
      await gate.approvals.decide(caller, waiting.approval.id, { decision: 'approve' })
      assert.equal((await view.call({ tool: 'read', input: { ...came, at: '2026-01-02' } })).status, 'waiting')
      assert.equal((await view.call({ tool: 'read', input: came })).status, 'done')
      assert.deepEqual(ran, [runs])
    })

    it('decides an input as it came that becomes something else as a whole', async () => {
      const whole = z.object({ path: z.string() }).transform((given) => new Map(Object.entries(given)))
      const policy: Policy = { deny: [{ match: 'read', input: "input.path == 'b'" }] }
      const { ran } = await callOf(whole, { path: 'a' }, policy)
      assert.deepEqual(ran, [new Map([['path', 'a']])])
      assert.equal((await callOf(whole, { path: 'b' }, policy)).outcome.status, 'refused')
    })

    it('decides a part of another type as it came, because rules know its type from the JSON Schema', async () => {
      const typed = z.object({
        note: z.string().transform((text) => text.length),
        list: z.array(z.object({ n: z.string().transform(Number) })),
        size: z.coerce.number(),
        since: z.number().default(1),
      })
      const given = { note: 'secret', list: [{ n: '7' }], size: '3' }
      for (const rule of ["input.note == 'secret'", "input.list[0].n == '7'", 'input.size == 3', 'input.since == 1']) {
        const { outcome } = await callOf(typed, given, { deny: [{ match: 'read', input: rule }] })
        assert.ok(outcome.status === 'refused')
        assert.equal(outcome.decision.reasons[0]?.code, 'input_denied', rule)
      }
      assert.deepEqual((await callOf(typed, given)).ran, [{ note: 6, list: [{ n: 7 }], size: 3, since: 1 }])
    })

    it('decides a field, too, that the schema has renamed', async () => {
      const renaming = z.object({ path: z.string() }).transform(({ path }) => ({ file: path, opened: new Date(0) }))
      for (const rule of ["input.path == 'a'", "input.file == 'a'"]) {
        const { outcome } = await callOf(renaming, { path: 'a' }, { deny: [{ match: 'read', input: rule }] })
        assert.ok(outcome.status === 'refused')
        assert.equal(outcome.decision.reasons[0]?.code, 'input_denied', rule)
      }
    })

    it('works with valibot and ArkType, which changes an input in place', async () => {
      const dates = v.object({
        at: v.pipe(
          v.string(),
          v.transform((text) => new Date(text)),
        ),
      })
      for (const one of [toStandardJsonSchema(dates), type({ at: 'string.date.parse' })]) {
        const policy: Policy = { deny: [{ match: 'read', input: "input.at == '2026-01-02'" }] }
        const { ran } = await callOf(one, { at: '2026-01-01' }, policy)
        assert.deepEqual(ran, [{ at: new Date('2026-01-01') }])
        assert.equal((await callOf(one, { at: '2026-01-02' }, policy)).outcome.status, 'refused')
      }
    })

    it('has hooks see and replace the JSON', async () => {
      const ran: unknown[] = []
      const tool = defineTool({
        name: 'read',
        inputSchema: z.object({ at: z.string().transform((text) => new Date(text)) }),
        execute: (given) => void ran.push(given),
      })
      const seen: unknown[] = []
      const hooks = {
        beforeToolCall({ input }: { input: unknown }) {
          seen.push(input)
          return { input: { at: '2026-03-03' } }
        },
      }
      const view = await createGate({ tools: [tool], hooks }).view({})
      await view.call({ tool: 'read', input: { at: '2026-01-01' } })
      assert.deepEqual([seen, ran], [[{ at: '2026-01-01' }], [{ at: new Date('2026-03-03') }]])
    })
  })

  const at = (validate: unknown): StandardSchema => ({
    '~standard': {
      version: 1,
      vendor: 'own',
      validate: validate as () => unknown,
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({}) },
    },
  })
  const refusing: readonly (readonly [what: string, validate: () => unknown, text: RegExp])[] = [
    ['that is asynchronous', () => Promise.resolve({ value: {} }), /the schema of own is asynchronous/],
    ['whose promise rejects', () => Promise.reject(new Error('later')), /the schema of own is asynchronous/],
    [
      'that throws',
      () => failWith('boom in /srv/app/node_modules/x.js'),
      /^TOOL_CALL_BLOCKED: the gate cannot decide now$/,
    ],
    ['that answers nothing', () => undefined, /returned no result/],
    ['that answers neither value nor issues', () => ({}), /returned no result/],
    ['that finds issues without a text', () => ({ issues: [{}] }), /invalid input at "": is not valid/],
    ['whose list of issues is empty', () => ({ issues: [], value: {} }), /is not valid/],
    [
      'that names a step as an object',
      () => ({ issues: [{ message: 'no', path: [{ key: 'a/b' }, 0] }] }),
      /at "\/a~1b\/0": no/,
    ],
  ]
  for (const [what, validate, text] of refusing) {
    it(`refuses every input of a schema ${what}`, async () => {
      const { outcome, ran } = await callOf(at(validate), {})
      assert.match(outcome.text, text)
      assert.deepEqual([outcome.status, ran], ['refused', []])
    })
  }

  const unusable: readonly (readonly [what: string, schema: unknown, message: RegExp])[] = [
    ['that has no JSON Schema', v.object({}), /tool "a": inputSchema is a schema of valibot .*toStandardJsonSchema/],
    [
      'that cannot be said in JSON Schema',
      z.object({ when: z.date() }),
      /inputSchema has no JSON Schema, says zod: .*z\.string\(\)\.transform/,
    ],
    ['of an unknown kind', { '~standard': {} }, /inputSchema is a schema of a library that has no JSON Schema/],
    ['whose JSON Schema is none', standardOf(() => ({ type: 'text' })), /inputSchema\/type must be one of/],
    ['whose JSON Schema is no object', standardOf(() => 7), /inputSchema must be an object/],
    ['whose JSON Schema is remote', standardOf(() => ({ $ref: 'http://x' })), /outside this schema/],
  ]
  for (const [what, schema, message] of unusable) {
    it(`refuses a schema ${what}`, () => {
      assert.throws(() => defineTool({ name: 'a', inputSchema: schema as StandardSchema }), {
        code: 'schema_invalid',
        message,
      })
    })
  }

  it('infers the input of execute', () => {
    defineTool({
      name: 'a',
      inputSchema: z.object({ q: z.string() }),
      execute: ({ q }) => q.toUpperCase(),
    })
  })
})

function standardOf(input: () => unknown): unknown {
  return { '~standard': { version: 1, vendor: 'own', jsonSchema: { input } } }
}

function failWith(message: string): never {
  throw new Error(message)
}

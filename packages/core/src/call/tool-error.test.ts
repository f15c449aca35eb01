import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { matchesAuditQuery, outcomeOfRecord } from '../entry/audit.ts'
import { createGate } from '../gate/gate.ts'
import { memoryAudit } from '../audit/memory.ts'
import type { CallTrace } from '../ports.ts'
import { isToolError, toolErrorOf } from './tool-error.ts'

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

  it('gives its result to the caller untouched', async () => {
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

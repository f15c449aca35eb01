import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readTraceContext, toTraceparent } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

describe('readTraceContext', () => {
  it('gives the span that a client is in', () => {
    const read = readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'rojo=1,congo=2' })
    const { traceState, ...context } = read ?? {}
    assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true })
    assert.equal(traceState?.serialize(), 'rojo=1,congo=2')
  })

  it('takes a later version for what is known of it, and the sampled flag alone', () => {
    assert.equal(readTraceContext({ traceparent: `cc-${TRACE}-${SPAN}-ff-more` })?.traceFlags, 1)
    assert.equal(readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-02` })?.traceFlags, 0)
  })

  const nothing: readonly unknown[] = [
    undefined,
    null,
    'text',
    {},
    { traceparent: 7 },
    { traceparent: '' },
    { traceparent: `ff-${TRACE}-${SPAN}-01` },
    { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` },
    { traceparent: `00-${TRACE}-${'0'.repeat(16)}-01` },
    { traceparent: `00-${TRACE.toUpperCase()}-${SPAN}-01` },
    { traceparent: `00-${TRACE}-${SPAN}-01-more` },
    { traceparent: `00-${TRACE}-${SPAN}-01\n` },
    { traceparent: `cc-${TRACE}-${SPAN}-01-${'x'.repeat(1000)}` },
  ]
  for (const meta of nothing) {
    it(`gives nothing for ${JSON.stringify(meta)?.slice(0, 80)}`, () => assert.equal(readTraceContext(meta), undefined))
  }

  it('leaves a tracestate that is none, or too long', () => {
    const traceparent = `00-${TRACE}-${SPAN}-01`
    for (const tracestate of [7, 'a=1,'.repeat(200)])
      assert.equal(readTraceContext({ traceparent, tracestate })?.traceState, undefined)
  })
})

describe('toTraceparent', () => {
  it('is what readTraceContext reads', () => {
    const context = { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true }
    assert.equal(toTraceparent(context), `00-${TRACE}-${SPAN}-01`)
    assert.deepEqual(readTraceContext({ traceparent: toTraceparent(context) }), context)
  })
})

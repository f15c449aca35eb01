import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { context, propagation, trace, type TracerProvider as Provider } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { createMcpTracing, readTraceContext, toTraceparent } from './mcp-tracing.ts'
import type { ServedRequest } from './tracing.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const REQUEST: ServedRequest = {
  method: 'tools/call',
  tool: 'files__read',
  id: 1,
  protocolVersion: '2026-07-28',
  meta: { traceparent: `00-${TRACE}-${SPAN}-01`, baggage: 'user=vera' },
}

afterEach(() => {
  trace.disable()
  context.disable()
})

describe('createMcpTracing', () => {
  it('returns undefined while no SDK is registered', () => assert.equal(createMcpTracing(unexpected)(), undefined))

  it('continues the trace of the client, and links the span of the transport that it came in', () => {
    const { spans, provider } = register()
    const http = provider.getTracer('http').startSpan('POST /mcp')
    const around = trace.setSpan(context.active(), http)
    context.with(around, () => createMcpTracing(unexpected)()?.startServed(REQUEST)?.end())
    const [served] = spans()
    assert.equal(served?.parentSpanContext?.spanId, SPAN)
    assert.deepEqual(
      served?.links.map((link) => link.context.spanId),
      [http.spanContext().spanId],
    )
  })

  it('is a child of the transport span if the client has no span', () => {
    const { spans, provider } = register()
    const http = provider.getTracer('http').startSpan('POST /mcp')
    const request = { ...REQUEST, meta: {} }
    context.with(trace.setSpan(context.active(), http), () =>
      createMcpTracing(unexpected)()?.startServed(request)?.end(),
    )
    assert.equal(spans()[0]?.parentSpanContext?.spanId, http.spanContext().spanId)
    assert.deepEqual(spans()[0]?.links, [])
  })

  it('leaves all baggage behind, whichever way it came', () => {
    register()
    const baggage = propagation.createBaggage({ user: { value: 'vera' } })
    const seen = context.with(propagation.setBaggage(context.active(), baggage), () =>
      createMcpTracing(unexpected)()
        ?.startServed(REQUEST)
        ?.within(() => [propagation.getActiveBaggage()]),
    )
    assert.deepEqual(seen, [undefined])
  })

  it('reports a tracing system that fails, and traces nothing then', () => {
    const faults: unknown[] = []
    const startSpan = (): never => {
      throw new Error('no tracing today')
    }
    const broken: Provider = { getTracer: () => ({ startSpan, startActiveSpan: startSpan }) }
    trace.setGlobalTracerProvider(broken)
    const find = createMcpTracing((error) => faults.push(error))
    assert.equal(find()?.startServed(REQUEST), undefined)
    assert.equal(faults.length, 1)
  })

  it('counts the first failure alone, and one end', () => {
    const { spans } = register()
    const operation = createMcpTracing(unexpected)()?.startServed(REQUEST)
    operation?.fail('tool_error')
    operation?.fail('-32603', -32_603)
    operation?.end()
    operation?.end()
    assert.deepEqual(
      spans().map(({ attributes }) => [attributes['error.type'], attributes['rpc.response.status_code']]),
      [['tool_error', undefined]],
    )
  })
})

function unexpected(error: unknown): never {
  throw error
}

function register() {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  trace.setGlobalTracerProvider(provider)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  return { provider, spans: () => exporter.getFinishedSpans() }
}

describe('readTraceContext', () => {
  it('returns the span of the client', () => {
    const read = readTraceContext({ traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'rojo=1,congo=2' })
    const { traceState, ...remote } = read ?? {}
    assert.deepEqual(remote, { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true })
    assert.equal(traceState?.serialize(), 'rojo=1,congo=2')
  })

  it('reads the known fields of a later version, and only the sampled flag', () => {
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

  it('ignores a tracestate that is invalid or too long', () => {
    const traceparent = `00-${TRACE}-${SPAN}-01`
    for (const tracestate of [7, 'a=1,'.repeat(200)])
      assert.equal(readTraceContext({ traceparent, tracestate })?.traceState, undefined)
  })
})

describe('toTraceparent', () => {
  it('is readable by readTraceContext', () => {
    const remote = { traceId: TRACE, spanId: SPAN, traceFlags: 1, isRemote: true }
    assert.equal(toTraceparent(remote), `00-${TRACE}-${SPAN}-01`)
    assert.deepEqual(readTraceContext({ traceparent: toTraceparent(remote) }), remote)
  })
})

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { context, metrics, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  AlwaysOffSampler,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { startRecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const META_SERVER = join(import.meta.dirname, '../packages/gateway/fixtures/meta-stdio.js')
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const FROM_CLIENT = { traceparent: `00-${TRACE}-${SPAN}-01`, tracestate: 'rojo=1', baggage: 'user=vera' }

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
})

describe('the trace of a call through the gateway', () => {
  for (const era of [MODERN, '2025-11-25'] as const satisfies readonly Era[]) {
    it(`goes from the client through the gateway to the server (${era})`, async () => {
      const { spans } = registerSdk()
      const gateway = await startMetaGateway()
      const told = await call(gateway, era, 'up__meta', FROM_CLIENT)
      const { server, gate, client } = byKind(spans())

      assert.equal(server.name, 'tools/call up__meta')
      assert.deepEqual(server.parentSpanContext?.spanId, SPAN)
      assert.deepEqual(server.attributes, {
        'mcp.method.name': 'tools/call',
        'mcp.protocol.version': era,
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'up__meta',
        'jsonrpc.request.id': '1',
        'network.transport': 'tcp',
        'network.protocol.name': 'http',
      })
      assert.equal(gate.name, 'execute_tool meta')
      assert.equal(gate.attributes['toolgate.tool.id'], 'up:meta')
      assert.equal(gate.parentSpanContext?.spanId, server.spanContext().spanId)
      assert.equal(client.name, 'tools/call meta')
      assert.equal(client.parentSpanContext?.spanId, gate.spanContext().spanId)
      assert.equal(client.attributes['toolgate.server'], 'up')
      assert.equal(client.attributes['network.transport'], 'pipe')
      assert.match(String(client.attributes['jsonrpc.request.id']), /^\d+$/)
      assert.deepEqual(new Set(spans().map((span) => span.spanContext().traceId)), new Set([TRACE]))

      const sent = JSON.parse(textOf(told)) as Record<string, unknown>
      assert.deepEqual(sent, { traceparent: `00-${TRACE}-${client.spanContext().spanId}-01` })
    })
  }

  it('is in the audit', async () => {
    registerSdk()
    const gateway = await startMetaGateway()
    await call(gateway, MODERN, 'up__meta', FROM_CLIENT)
    await call(gateway, MODERN, 'made_up', FROM_CLIENT)
    const { records } = (await gateway.api('/api/audit')).body as AuditBody
    assert.deepEqual(
      records.filter(({ tool }) => tool !== undefined).map(({ event, trace_id: id }) => [event, id]),
      [
        ['tool_blocked', TRACE],
        ['tool_result', TRACE],
        ['tool_call', TRACE],
      ],
    )
  })

  it('begins at the gateway if the client sends none or an invalid one', async () => {
    const { spans } = registerSdk()
    const gateway = await startMetaGateway()
    for (const meta of [{}, { traceparent: '00-nonsense-01' }, { traceparent: { toString: 1 } }]) {
      await call(gateway, MODERN, 'up__meta', meta)
      const { server } = byKind(spans())
      assert.equal(server.parentSpanContext, undefined)
    }
  })

  it('is in the _meta of MCP 2026-07-28, beside the fields that the revision requires', async () => {
    const { spans } = registerSdk()
    const upstream = await startRecordingServer([{ name: 'echo' }], { era: 'modern' })
    closers.push(() => upstream.close())
    const gateway = await startGateway([httpServer('up', upstream.url)])
    await call(gateway, MODERN, 'up__echo', FROM_CLIENT)
    const { client } = byKind(spans())
    const meta = upstream.calls()[0]?.params['_meta'] as Record<string, unknown>
    assert.equal(meta['traceparent'], `00-${TRACE}-${client.spanContext().spanId}-01`)
    assert.deepEqual([meta['baggage'], meta['tracestate']], [undefined, undefined])
    assert.equal(meta['io.modelcontextprotocol/protocolVersion'], MODERN)
    assert.deepEqual(
      [
        client.attributes['server.address'],
        client.attributes['server.port'],
        client.attributes['mcp.protocol.version'],
      ],
      ['127.0.0.1', Number(new URL(upstream.url).port), MODERN],
    )
  })

  it('is not sent to the server if no SDK is registered or the sampler drops it', async () => {
    const gateway = await startMetaGateway()
    assert.equal(textOf(await call(gateway, MODERN, 'up__meta', FROM_CLIENT)), 'null')
    const { spans } = registerSdk({ sampler: new AlwaysOffSampler() })
    const sampled = await startMetaGateway()
    assert.equal(textOf(await call(sampled, MODERN, 'up__meta', FROM_CLIENT)), 'null')
    assert.deepEqual(spans(), [])
  })

  it('begins when an SDK is registered while the gateway runs', async () => {
    const gateway = await startMetaGateway()
    await call(gateway, MODERN, 'up__meta')
    const { spans } = registerSdk()
    for (let i = 0; i < 100 && spans().length === 0; i++) await call(gateway, MODERN, 'up__meta')
    assert.ok(spans().length > 0)
  })
})

describe('a span of the gateway', () => {
  it('has the type of its error: tool_error for a result with isError, a JSON-RPC code for the rest', async () => {
    const { spans } = registerSdk()
    const gateway = await startMetaGateway()
    await call(gateway, MODERN, 'up__fail')
    await call(gateway, '2025-11-25', 'up__rpc_error')
    await gateway.ask('admin', MODERN, 'tools/list', { cursor: 'x' })
    assert.deepEqual(
      spans()
        .filter(({ kind }) => kind !== SpanKind.INTERNAL)
        .map(({ name, kind, attributes }) => [name, SpanKind[kind], attributes['error.type']]),
      [
        ['tools/call fail', 'CLIENT', 'tool_error'],
        ['tools/call up__fail', 'SERVER', 'tool_error'],
        ['tools/call rpc_error', 'CLIENT', '-32050'],
        ['tools/call up__rpc_error', 'SERVER', '-32050'],
        ['tools/list', 'SERVER', '-32602'],
      ],
    )
  })

  it('exists for lists and discovery, and for no method that a client made up', async () => {
    const { spans } = registerSdk()
    const gateway = await startMetaGateway()
    await gateway.ask('admin', MODERN, 'tools/list')
    await gateway.ask('admin', '2025-11-25', 'tools/list')
    await gateway.ask('admin', MODERN, 'server/discover')
    await gateway.ask('admin', MODERN, 'made/up')
    assert.deepEqual(
      spans().map(({ name, attributes }) => [name, attributes['gen_ai.tool.name'], attributes['error.type']]),
      [
        ['tools/list', undefined, undefined],
        ['tools/list', undefined, undefined],
        ['server/discover', undefined, undefined],
      ],
    )
  })

  it('never has a name that a client made up, nor does a metric', async () => {
    const { spans, exported } = registerSdk()
    const gateway = await startMetaGateway()
    for (const era of [MODERN, '2025-11-25'] as const)
      for (const name of ['made_up', 'up__made_up', 'constructor', '__proto__']) await call(gateway, era, name)
    const names = new Set(byKindAll(spans(), SpanKind.SERVER).map(({ name }) => name))
    assert.deepEqual(names, new Set(['tools/call _unknown']))
    const { text } = await metricsOf(gateway)
    const all = JSON.stringify([spans().map(({ name, attributes }) => [name, attributes]), await exported()]) + text
    assert.doesNotMatch(all, /made_up|constructor|__proto__/)
  })
})

describe('the metrics of the gateway', () => {
  it('measure its requests and those to servers, by method, tool and error', async () => {
    const { exported } = registerSdk()
    const gateway = await startMetaGateway()
    await call(gateway, MODERN, 'up__meta')
    await call(gateway, MODERN, 'up__fail')
    await call(gateway, MODERN, 'made_up')
    const series = await exported()
    const of = (name: string) =>
      series
        .filter((one) => one.name === name)
        .map(({ attributes, count }) => [attributes['gen_ai.tool.name'], attributes['error.type'], count])
    assert.deepEqual(of('mcp.server.operation.duration'), [
      ['up__meta', undefined, 1],
      ['up__fail', 'tool_error', 1],
      ['_unknown', 'tool_error', 1],
    ])
    assert.deepEqual(of('mcp.client.operation.duration'), [
      ['meta', undefined, 1],
      ['fail', 'tool_error', 1],
    ])
  })

  it('are at /metrics, with a console key', async () => {
    const gateway = await startMetaGateway()
    for (const name of ['up__meta', 'up__meta', 'up__fail', 'made_up']) await call(gateway, MODERN, name)
    assert.equal((await fetch(`${gateway.url}/metrics`)).status, 401)
    const { status, text } = await metricsOf(gateway)
    assert.equal(status, 200)
    assert.match(text, /^toolgate_server_up\{server="up"\} 1$/m)
    assert.match(text, /^toolgate_catalog_tools 3$/m)
    assert.match(text, /^toolgate_tool_calls_total\{tool="up:meta",status="done"\} 2$/m)
    assert.match(text, /^toolgate_tool_calls_total\{tool="_unknown",status="refused"\} 1$/m)
    assert.match(text, /^toolgate_calls_total\{status="refused",reason="tool_not_found"\} 1$/m)
    assert.match(text, /^toolgate_running_calls 0$/m)
    assert.match(text, /^toolgate_audit_records_total [1-9]\d*$/m)
  })

  it('need no key if the configuration says so', async () => {
    const gateway = await startGateway([], { metrics: { public: true } })
    assert.equal((await fetch(`${gateway.url}/metrics`)).status, 200)
  })
})

function startMetaGateway(): Promise<TestGateway> {
  return startGateway([nodeServer('up', [META_SERVER])])
}

async function startGateway(
  servers: Parameters<typeof startTestGateway>[0]['servers'] & object,
  given: Parameters<typeof startTestGateway>[0] = {},
): Promise<TestGateway> {
  const gateway = await startTestGateway({ servers, ...given })
  closers.push(() => gateway.close())
  return gateway
}

async function call(gateway: TestGateway, era: Era, name: string, meta: object = {}): Promise<RpcAnswer> {
  const answer = await gateway.ask('admin', era, 'tools/call', { name, arguments: {}, _meta: meta })
  return answer.json() as RpcAnswer
}

async function metricsOf(gateway: TestGateway): Promise<{ status: number; text: string }> {
  const answer = await fetch(`${gateway.url}/metrics`, { headers: { authorization: 'Bearer demo-console' } })
  return { status: answer.status, text: await answer.text() }
}

function byKindAll(spans: readonly ReadableSpan[], kind: SpanKind): readonly ReadableSpan[] {
  return spans.filter((span) => span.kind === kind)
}

/** The latest span of each side of the gateway, and of the gate between them. */
function byKind(spans: readonly ReadableSpan[]): { server: ReadableSpan; gate: ReadableSpan; client: ReadableSpan } {
  const last = (kind: SpanKind) => byKindAll(spans, kind).at(-1) ?? assert.fail(`no span of kind ${SpanKind[kind]}`)
  return { server: last(SpanKind.SERVER), gate: last(SpanKind.INTERNAL), client: last(SpanKind.CLIENT) }
}

/** Registers a real SDK that exports to memory, as a preloaded program does. Removed after the test. */
function registerSdk({ sampler }: { sampler?: Sampler } = {}) {
  const spanExporter = new InMemorySpanExporter()
  const tracing = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: spanExporter })],
    ...(sampler ? { sampler } : {}),
  })
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 })
  const metering = new MeterProvider({ readers: [reader] })
  trace.setGlobalTracerProvider(tracing)
  metrics.setGlobalMeterProvider(metering)
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  closers.push(async () => {
    trace.disable()
    metrics.disable()
    context.disable()
    await Promise.all([tracing.shutdown(), metering.shutdown()])
  })
  const exported = async () => {
    await reader.forceFlush()
    const latest =
      metricExporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
    return latest.flatMap(({ descriptor: { name }, dataPoints }) =>
      dataPoints.map(({ attributes, value }) => ({ name, attributes, count: (value as { count?: number }).count })),
    )
  }
  return { spans: () => spanExporter.getFinishedSpans(), exported }
}

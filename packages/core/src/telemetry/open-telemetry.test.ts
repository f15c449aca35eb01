import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, it } from 'node:test'
import { context, type ContextManager, metrics, SpanKind, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api'
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
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { TracedCall } from '../ports/ports.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { openTelemetry, type OpenTelemetryOptions } from './open-telemetry.ts'

const CALL: TracedCall = {
  tool: { id: 'files:read', name: 'read', description: 'Reads a file.' },
  callId: 'call_7',
  caller: { user: 'vera', agent: 'bot', chat: { id: 'c1' } },
  run: 'run-1',
}
const UNKNOWN: TracedCall = { ...CALL, tool: undefined }

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

describe('openTelemetry', () => {
  it('makes a span of each call, with the names of the GenAI conventions', () => {
    const { spans, provider } = tracing()
    openTelemetry({ tracer: provider.getTracer('test') })
      .startCall(CALL)
      ?.end({ status: 'done', code: undefined, input: { secret: 1 }, output: 'secret' })
    const [span] = spans()
    assert.deepEqual(
      { name: span?.name, kind: span?.kind, status: span?.status.code, attributes: span?.attributes },
      {
        name: 'execute_tool read',
        kind: SpanKind.INTERNAL,
        status: SpanStatusCode.UNSET,
        attributes: {
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'read',
          'gen_ai.tool.type': 'function',
          'gen_ai.tool.call.id': 'call_7',
          'gen_ai.tool.description': 'Reads a file.',
          'gen_ai.agent.name': 'bot',
          'gen_ai.conversation.id': 'c1',
          'toolgate.tool.id': 'files:read',
          'toolgate.run.id': 'run-1',
          'toolgate.status': 'done',
        },
      },
    )
  })

  it('ends the span of a refused and of a failed call with its code, and that of one that waits without an error', () => {
    const { spans, provider } = tracing()
    const telemetry = openTelemetry({ tracer: provider.getTracer('test') })
    telemetry.startCall(CALL)?.end({ status: 'refused', code: 'policy_denied' })
    telemetry.startCall(CALL)?.end({ status: 'failed', code: 'tool_timeout' })
    telemetry.startCall(CALL)?.end({ status: 'waiting', code: 'approval_required' })
    assert.deepEqual(
      spans().map(({ attributes, status }) => [
        attributes['toolgate.status'],
        attributes['toolgate.reason'],
        attributes['error.type'],
        status.code,
      ]),
      [
        ['refused', 'policy_denied', 'policy_denied', SpanStatusCode.ERROR],
        ['failed', 'tool_timeout', 'tool_timeout', SpanStatusCode.ERROR],
        ['waiting', 'approval_required', undefined, SpanStatusCode.UNSET],
      ],
    )
  })

  it('counts the first end alone', () => {
    const { spans, provider } = tracing()
    const call = openTelemetry({ tracer: provider.getTracer('test') }).startCall(CALL)
    call?.end({ status: 'done', code: undefined })
    call?.end({ status: 'failed', code: 'tool_failed' })
    assert.deepEqual(
      spans().map(({ attributes }) => attributes['toolgate.status']),
      ['done'],
    )
  })

  it('calls a tool that the catalog does not have _unknown', async () => {
    const { spans, provider } = tracing()
    const { series, meter } = metering()
    openTelemetry({ tracer: provider.getTracer('test'), meter })
      .startCall(UNKNOWN)
      ?.end({ status: 'refused', code: 'tool_not_found' })
    assert.equal(spans()[0]?.name, 'execute_tool _unknown')
    assert.equal((await series('toolgate.calls'))[0]?.attributes['gen_ai.tool.name'], '_unknown')
  })

  it('returns the trace id, and traces what a tool starts beneath its call', async () => {
    const { spans, provider } = tracing()
    const tracer = provider.getTracer('test')
    manageContext()
    const call = openTelemetry({ tracer }).startCall(CALL)
    const answer = await call?.within?.(async () => {
      await turn()
      tracer.startSpan('inner').end()
      return 42
    })
    call?.end({ status: 'done', code: undefined })
    const [inner, outer] = spans()
    assert.equal(answer, 42)
    assert.match(call?.traceId ?? '', /^[0-9a-f]{32}$/)
    assert.deepEqual([inner?.name, outer?.name], ['inner', 'execute_tool read'])
    assert.equal(inner?.parentSpanContext?.spanId, outer?.spanContext().spanId)
    assert.equal(inner?.spanContext().traceId, call?.traceId)
  })

  it('is beneath the span that the caller is in', () => {
    const { spans, provider } = tracing()
    const tracer = provider.getTracer('test')
    manageContext()
    const outer = tracer.startSpan('step')
    context.with(trace.setSpan(context.active(), outer), () =>
      openTelemetry({ tracer }).startCall(CALL)?.end({ status: 'done', code: undefined }),
    )
    assert.equal(spans()[0]?.parentSpanContext?.spanId, outer.spanContext().spanId)
  })

  it('puts inputs and outputs on spans only through the redaction that switches it on', () => {
    const { spans, provider } = tracing()
    const redact = (value: unknown): unknown => JSON.parse(JSON.stringify(value).replaceAll('s3cret', '[redacted]'))
    openTelemetry({ tracer: provider.getTracer('test'), redact })
      .startCall(CALL)
      ?.end({ status: 'done', code: undefined, input: { key: 's3cret' }, output: { text: 'x'.repeat(9000) } })
    const { attributes } = spans()[0] as ReadableSpan
    assert.equal(attributes['gen_ai.tool.call.arguments'], '{"key":"[redacted]"}')
    assert.match(String(attributes['gen_ai.tool.call.result']), /^\{"text":"x+… \(9011 characters\)$/)
  })

  it('leaves out what the redaction fails on', () => {
    const { spans, provider } = tracing()
    const faults: unknown[] = []
    const redact = (): never => {
      throw new Error('no')
    }
    openTelemetry({ tracer: provider.getTracer('test'), redact, onFault: (error) => faults.push(error) })
      .startCall(CALL)
      ?.end({ status: 'done', code: undefined, input: { key: 's3cret' }, output: 's3cret' })
    assert.doesNotMatch(JSON.stringify(spans()[0]?.attributes), /s3cret/)
    assert.equal(faults.length, 2)
  })

  it('measures in seconds how long the calls that ran took, in buckets that fit', async () => {
    const { series, meter } = metering()
    const clock = manualClock()
    const telemetry = openTelemetry({ meter, clock })
    const ended = telemetry.startCall(CALL)
    clock.advance(250)
    ended?.end({ status: 'done', code: undefined })
    telemetry.startCall(CALL)?.end({ status: 'failed', code: 'tool_failed' })
    telemetry.startCall(CALL)?.end({ status: 'refused', code: 'policy_denied' })
    const [done, failed, ...rest] = await series('gen_ai.execute_tool.duration')
    assert.deepEqual(rest, [])
    assert.deepEqual(done?.attributes, {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'read',
      'toolgate.tool.id': 'files:read',
    })
    assert.equal(failed?.attributes['error.type'], 'tool_failed')
    const value = done?.value as { sum: number; count: number; buckets: { boundaries: number[] } }
    assert.deepEqual([value.sum, value.count], [0.25, 1])
    assert.deepEqual([value.buckets.boundaries.at(0), value.buckets.boundaries.at(-1)], [0.01, 81.92])
  })

  it('counts every call by tool, status and reason', async () => {
    const { series, meter } = metering()
    const telemetry = openTelemetry({ meter })
    for (let i = 0; i < 2; i++) telemetry.startCall(CALL)?.end({ status: 'refused', code: 'rate_limited' })
    telemetry.startCall(CALL)?.end({ status: 'done', code: undefined })
    assert.deepEqual(
      (await series('toolgate.calls')).map(({ value, attributes }) => [value, attributes]),
      [
        [
          2,
          {
            'gen_ai.tool.name': 'read',
            'toolgate.tool.id': 'files:read',
            'toolgate.status': 'refused',
            'toolgate.reason': 'rate_limited',
          },
        ],
        [1, { 'gen_ai.tool.name': 'read', 'toolgate.tool.id': 'files:read', 'toolgate.status': 'done' }],
      ],
    )
  })

  it('does nothing where no SDK is registered, finds one that comes later, and sees it go', async () => {
    const telemetry = openTelemetry()
    assert.equal(telemetry.startCall(CALL), undefined)
    const { spans, provider } = tracing()
    trace.setGlobalTracerProvider(provider)
    closers.push(() => trace.disable())
    telemetry.startCall(CALL)?.end({ status: 'done', code: undefined })
    assert.equal(spans().length, 1)
    trace.disable()
    assert.equal(telemetry.startCall(CALL), undefined)

    const { series, provider: meters } = metering()
    metrics.setGlobalMeterProvider(meters)
    closers.push(() => metrics.disable())
    const counted = telemetry.startCall(CALL)
    assert.equal(counted?.traceId, undefined)
    assert.equal(
      counted?.within?.(() => 42),
      42,
    )
    counted?.end({ status: 'done', code: undefined })
    assert.equal((await series('toolgate.calls')).length, 1)
  })

  it('passes the trace on where the sampler keeps nothing of it', () => {
    const { spans, provider } = tracing({ sampler: new AlwaysOffSampler() })
    const call = openTelemetry({ tracer: provider.getTracer('test') }).startCall(CALL)
    assert.match(call?.traceId ?? '', /^[0-9a-f]{32}$/)
    call?.end({ status: 'done', code: undefined })
    assert.equal(spans().length, 0)
  })
})

describe('a tracing system that fails', () => {
  const fail = (): never => {
    throw new Error('no tracing today')
  }
  const brokenSpan = { spanContext: fail, isRecording: fail, setAttributes: fail, setAttribute: fail, end: fail }
  const halfBroken = {
    ...brokenSpan,
    spanContext: () => ({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }),
    isRecording: () => false,
  }

  it('when it starts a call leaves it untraced', () => {
    const faults: unknown[] = []
    const onFault = (error: unknown) => faults.push(error)
    assert.equal(openTelemetry({ tracer: tracerOf(fail), onFault }).startCall(CALL), undefined)
    assert.equal(openTelemetry({ tracer: tracerOf(() => brokenSpan), onFault }).startCall(CALL), undefined)
    assert.equal(faults.length, 2)
  })

  it('when it ends one changes nothing, nor does a fault listener that throws', () => {
    const call = openTelemetry({ tracer: tracerOf(() => halfBroken), onFault: fail }).startCall(CALL)
    assert.equal(
      call?.within?.(() => 42),
      42,
    )
    assert.doesNotThrow(() => call?.end({ status: 'done', code: undefined }))
  })

  it('when it switches the context still runs the tool, once, and returns or throws what it did', () => {
    const { provider } = tracing()
    const managers: readonly ((step: () => void) => void)[] = [
      fail,
      () => {},
      (step) => {
        step()
        fail()
      },
      (step) => {
        step()
        step()
      },
    ]
    for (const through of managers) {
      context.setGlobalContextManager({
        active: () => ROOT,
        with: ((_: unknown, step: () => void) => through(step)) as ContextManager['with'],
        bind: (_: unknown, target: never) => target,
        enable: fail,
        disable: () => ({}) as never,
      })
      closers.push(() => context.disable())
      let runs = 0
      const call = openTelemetry({ tracer: provider.getTracer('test') }).startCall(CALL)
      assert.equal(
        call?.within?.(() => ++runs),
        1,
      )
      const thrown = new Error('the tool’s own')
      assert.throws(
        () =>
          call?.within?.(() => {
            runs++
            throw thrown
          }),
        thrown,
      )
      assert.equal(runs, 2)
      context.disable()
    }
  })
})

const ROOT = context.active()

function tracerOf(startSpan: () => unknown): Tracer {
  return { startSpan: startSpan as Tracer['startSpan'], startActiveSpan: startSpan as Tracer['startActiveSpan'] }
}

function tracing(options: ConstructorParameters<typeof TracerProvider>[0] = {}) {
  const exporter = new InMemorySpanExporter()
  const provider = new TracerProvider({ ...options, spanProcessors: [new SimpleSpanProcessor({ exporter })] })
  closers.push(() => provider.shutdown())
  return { provider, spans: () => exporter.getFinishedSpans() }
}

function metering() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [reader] })
  closers.push(() => provider.shutdown())
  const series = async (name: string) => {
    await reader.forceFlush()
    const all =
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
    return all.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  }
  return { provider, meter: provider.getMeter('test') as NonNullable<OpenTelemetryOptions['meter']>, series }
}

function manageContext(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  closers.push(() => context.disable())
}

import { type Attributes, SpanKind, trace } from '@opentelemetry/api'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { AlwaysOffSampler, NoopSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { combineTelemetry, createGate, type Telemetry } from '@toolgate/core'
import { openTelemetry } from '@toolgate/core/telemetry'
import { type Case, measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

const call = {
  tool: { id: 'server0:read_thing_0', name: 'read_thing_0', description: 'Does read to thing 0.' },
  callId: 'call-1',
  caller: { user: 'vera', tenant: 'acme' },
  run: undefined,
}
const done = { status: 'done', code: undefined } as const
const work = (): string => 'read'

const recording = new TracerProvider({ spanProcessors: [new NoopSpanProcessor()] }).getTracer('bench')
const sampledOut = new TracerProvider({ sampler: new AlwaysOffSampler() }).getTracer('bench')
const meter = new MeterProvider().getMeter('bench')

/** What a call through the gate adds where it is followed: begin, run within, end. */
function followed(name: string, telemetry: Telemetry, budget = ''): Case {
  return {
    name,
    budget,
    run(count) {
      for (let i = 0; i < count; i++) {
        const following = telemetry.startCall(call)
        if ((following?.within ? following.within(work) : work()) === '') throw new Error('it gave nothing')
        following?.end(done)
      }
    },
  }
}

/** The least that a span takes, with what ours carries. */
function bareSpan(name: string, tracer = trace.getTracer('bench')): Case {
  const attributes: Attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'read_thing_0' }
  return {
    name,
    run(count) {
      for (let i = 0; i < count; i++)
        tracer.startSpan('execute_tool read_thing_0', { kind: SpanKind.INTERNAL, attributes }).end()
    },
  }
}

async function gated(name: string, telemetry?: Telemetry): Promise<Case> {
  const gate = createGate({ tools: makeTools(1000), ...(telemetry ? { telemetry } : {}) })
  const view = await gate.view({ user: 'vera', tenant: 'acme' })
  const input = Object.freeze({ path: '/a' })
  return {
    name,
    async run(count) {
      for (let i = 0; i < count; i++) {
        const { status } = await view.call({ tool: call.tool.id, input, callId: 'call-1' })
        if (status !== 'done') throw new Error(`the call was ${status}`)
      }
    },
  }
}

const figures = await measure([
  bareSpan('a no-op span'),
  followed('followed, no SDK registered', openTelemetry(), '1 ×'),
  followed(
    '… combined with one that counts nothing',
    combineTelemetry(openTelemetry(), { startCall: () => undefined }),
  ),
  bareSpan('a bare span of the SDK, sampled out', sampledOut),
  followed('followed, sampled out', openTelemetry({ tracer: sampledOut })),
  bareSpan('a bare span of the SDK, recorded', recording),
  followed('followed, recorded', openTelemetry({ tracer: recording })),
  followed('followed, recorded and counted', openTelemetry({ tracer: recording, meter })),
  await gated('a gated call that nobody follows'),
  await gated('a gated call, no SDK registered', openTelemetry()),
  await gated('a gated call, recorded and counted', openTelemetry({ tracer: recording, meter })),
])
printFigures('Following one call with OpenTelemetry', figures, 'a no-op span')

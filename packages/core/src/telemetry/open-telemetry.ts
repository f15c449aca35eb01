import {
  type Attributes,
  type Context,
  context,
  type Counter,
  type Histogram,
  isSpanContextValid,
  type Meter,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { checkShape, messageOf, shapeOf } from '@toolgate/values'
import { systemClock } from '../memory/clock.ts'
import type { CallEnd, CallTrace, Clock, Telemetry, TracedCall } from '../ports/ports.ts'
import { createSdkFinder, runWithin, type Sdk } from './sdk.ts'
import { toJsonText } from '@toolgate/values/json'

export { createSdkFinder, runWithin, type Sdk, type SdkOptions } from './sdk.ts'

export interface OpenTelemetryOptions {
  /** Default: the tracer of the registered SDK, even if it is registered later. Without an SDK, nothing is recorded. */
  readonly tracer?: Tracer | undefined
  readonly meter?: Meter | undefined
  /**
   * Puts inputs and outputs on spans, redacted by this function. Without it they are never recorded, because they may
   * contain secrets, and every reader of the traces sees them.
   */
  readonly redact?: ((value: unknown) => unknown) | undefined
  readonly clock?: Clock | undefined
  /** Receives errors of the tracing system, which do not affect calls. */
  readonly onFault?: ((error: unknown) => void) | undefined
}

const OPTIONS = shapeOf<OpenTelemetryOptions>({ tracer: true, meter: true, redact: true, clock: true, onFault: true })

/** The name for tools that are not in the catalog: a name that a client made up must not name a span or a series. */
export const UNKNOWN_TOOL = '_unknown'

/** In seconds, as the GenAI conventions advise for durations. */
const DURATION_BUCKETS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const MAX_DESCRIPTION = 1024
const MAX_CALL_ID = 256
const MAX_CONTENT = 8192

/**
 * Reports calls to OpenTelemetry: a span `execute_tool <name>` for each, the metric `gen_ai.execute_tool.duration` for
 * those that ran, and the counter `toolgate.calls` for all.
 *
 * The names are from the GenAI semantic conventions, whose status is Development; `toolgate.*` are our own. Without a
 * registered SDK it does nothing. Errors of the SDK change no call.
 *
 * @example
 * const gate = createGate({ tools, telemetry: openTelemetry() })
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Telemetry {
  checkShape('openTelemetry', options, OPTIONS)
  const { clock = systemClock, redact, tracer, meter } = options
  const findSdk = createSdkFinder({ name: '@toolgate/core', tracer, meter, createInstruments })
  const onFault = (error: unknown): void => {
    try {
      options.onFault?.(error)
    } catch {
      // The host's own listener throws.
    }
  }
  const host: TelemetryHost = { clock, redact, onFault }
  return {
    startCall(call) {
      try {
        const sdk = findSdk()
        return sdk && new OpenCallTrace(call, sdk, host)
      } catch (error) {
        onFault(error)
        return undefined
      }
    },
  }
}

interface TelemetryHost {
  readonly clock: Clock
  readonly redact: OpenTelemetryOptions['redact']
  readonly onFault: (error: unknown) => void
}

interface CallInstruments {
  readonly duration: Histogram
  readonly calls: Counter
}

function createInstruments(meter: Meter): CallInstruments {
  return {
    duration: meter.createHistogram('gen_ai.execute_tool.duration', {
      unit: 's',
      description: 'The duration of a single tool execution.',
      advice: { explicitBucketBoundaries: DURATION_BUCKETS },
    }),
    calls: meter.createCounter('toolgate.calls', {
      unit: '{call}',
      description: 'Calls of tools through the gate, with how they ended and why.',
    }),
  }
}

/** A class, because one is created for each call. */
class OpenCallTrace implements CallTrace {
  readonly traceId: string | undefined
  readonly #call: TracedCall
  readonly #host: TelemetryHost
  readonly #instruments: CallInstruments | undefined
  readonly #span: Span | undefined
  readonly #context: Context | undefined
  readonly #startedMs: number
  #ended = false

  constructor(call: TracedCall, { tracer, instruments }: Sdk<CallInstruments>, host: TelemetryHost) {
    this.#call = call
    this.#host = host
    this.#instruments = instruments
    this.#startedMs = instruments ? host.clock.monotonicMs() : 0
    if (!tracer) return
    const parent = context.active()
    const span = startSpan(tracer, call, parent)
    this.#span = span
    this.#context = trace.setSpan(parent, span)
    const spanContext = span.spanContext()
    if (isSpanContextValid(spanContext)) this.traceId = spanContext.traceId
  }

  within<T>(work: () => T): T {
    return this.#context ? runWithin(this.#context, work, this.#host.onFault) : work()
  }

  end(result: CallEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#try(() => this.#endSpan(result))
    this.#try(() => this.#count(result))
  }

  #endSpan(result: CallEnd): void {
    const span = this.#span
    if (!span) return
    try {
      if (span.isRecording()) {
        span.setAttribute('toolgate.status', result.status)
        if (result.code !== undefined) span.setAttribute('toolgate.reason', result.code)
        const type = errorType(result)
        if (type !== undefined) {
          span.setAttribute('error.type', type)
          span.setStatus({ code: SpanStatusCode.ERROR })
        }
        this.#setContent(span, result)
      }
    } finally {
      span.end()
    }
  }

  #setContent(span: Span, { input, output }: CallEnd): void {
    const { redact } = this.#host
    if (!redact) return
    for (const [name, value] of [
      ['gen_ai.tool.call.arguments', input],
      ['gen_ai.tool.call.result', output],
    ] as const) {
      // A value that cannot be redacted or is not a text is left out.
      if (value !== undefined) this.#try(() => span.setAttribute(name, toText(redact(value))))
    }
  }

  #count(result: CallEnd): void {
    const instruments = this.#instruments
    if (!instruments) return
    const { status, code } = result
    const { tool, execution } = labelsOf(this.#call)
    instruments.calls.add(1, {
      ...tool,
      'toolgate.status': status,
      ...(code === undefined ? {} : { 'toolgate.reason': code }),
    })
    if (status !== 'done' && status !== 'failed') return
    const type = errorType(result)
    const seconds = (this.#host.clock.monotonicMs() - this.#startedMs) / 1000
    instruments.duration.record(seconds, type === undefined ? execution : { ...execution, 'error.type': type })
  }

  #try(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#host.onFault(error)
    }
  }
}

function startSpan(tracer: Tracer, call: TracedCall, parent: Context): Span {
  const span = tracer.startSpan(labelsOf(call).spanName, labelsOf(call).spanOptions, parent)
  if (span.isRecording()) span.setAttributes(callAttributes(call))
  return span
}

/** The attributes that are the same for each call of a tool. */
interface ToolAttributes {
  readonly spanName: string
  readonly spanOptions: SpanOptions
  readonly tool: Attributes
  readonly execution: Attributes
}

const UNKNOWN_LABELS = toLabels({ name: UNKNOWN_TOOL, id: UNKNOWN_TOOL })
const labels = new WeakMap<object, ToolAttributes>()

function labelsOf({ tool }: TracedCall): ToolAttributes {
  if (!tool) return UNKNOWN_LABELS
  let known = labels.get(tool)
  if (!known) labels.set(tool, (known = toLabels(tool)))
  return known
}

function toLabels({ name, id }: { readonly name: string; readonly id: string }): ToolAttributes {
  const tool = Object.freeze({ 'gen_ai.tool.name': name, 'toolgate.tool.id': id })
  const execution = Object.freeze({ 'gen_ai.operation.name': 'execute_tool', ...tool })
  // Attributes that samplers use must be set at the start.
  const spanOptions = { kind: SpanKind.INTERNAL, attributes: execution }
  return { spanName: `execute_tool ${name}`, spanOptions, tool, execution }
}

function callAttributes({ tool, callId, caller, run }: TracedCall): Attributes {
  return {
    'gen_ai.tool.call.id': callId.slice(0, MAX_CALL_ID),
    ...(tool ? { 'gen_ai.tool.type': 'function' } : {}),
    ...(tool && tool.description !== ''
      ? { 'gen_ai.tool.description': tool.description.slice(0, MAX_DESCRIPTION) }
      : {}),
    ...(caller.agent === undefined ? {} : { 'gen_ai.agent.name': caller.agent }),
    ...(caller.chat === undefined ? {} : { 'gen_ai.conversation.id': caller.chat.id }),
    ...(run === undefined ? {} : { 'toolgate.run.id': run }),
  }
}

/** A call that waits for a person has not failed. */
function errorType({ status, code }: CallEnd): string | undefined {
  return status === 'failed' || status === 'refused' ? (code ?? '_OTHER') : undefined
}

function toText(value: unknown): string {
  const text = typeof value === 'string' ? value : (toJsonText(value) ?? messageOf(value))
  return text.length > MAX_CONTENT ? `${text.slice(0, MAX_CONTENT)}… (${text.length} characters)` : text
}

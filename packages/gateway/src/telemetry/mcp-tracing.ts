import {
  type Attributes,
  context,
  type Context,
  createTraceState,
  type Histogram,
  type Meter,
  propagation,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api'
import { isObject } from '@toolgate/values/json'
import { createSdkFinder, runWithin, type Sdk, UNKNOWN_TOOL } from '@toolgate/core/telemetry'
import type { McpOperation, McpTracing, SentRequest, ServedRequest, Transport } from './tracing.ts'
import { VERSION } from '../files.ts'

/** Bucket bounds in seconds, as the OpenTelemetry conventions for MCP recommend. */
const DURATION_BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
const MAX_ID = 128

/**
 * Returns a function that returns the current tracing, or `undefined` while no SDK is registered.
 *
 * Names follow the OpenTelemetry conventions for MCP, whose status is Development.
 */
export function createMcpTracing(onFault: (error: unknown) => void): () => McpTracing | undefined {
  const findSdk = createSdkFinder({ name: '@toolgate/gateway', version: VERSION, createInstruments })
  let known: Sdk<McpInstruments> | undefined
  let tracing: McpTracing | undefined
  return () => {
    const sdk = findSdk()
    if (sdk !== known) {
      known = sdk
      tracing = sdk && tracingWith(sdk, onFault)
    }
    return tracing
  }
}

interface McpInstruments {
  readonly server: Histogram
  readonly client: Histogram
}

function createInstruments(meter: Meter): McpInstruments {
  const advice = { explicitBucketBoundaries: DURATION_BUCKETS }
  const histogram = (side: string, description: string) =>
    meter.createHistogram(`mcp.${side}.operation.duration`, { unit: 's', description, advice })
  return {
    server: histogram('server', 'From the receipt of an MCP request until its answer is sent.'),
    client: histogram('client', 'From the sending of an MCP request until its answer has come.'),
  }
}

function tracingWith(sdk: Sdk<McpInstruments>, onFault: (error: unknown) => void): McpTracing {
  const safely = (start: () => McpOperation): McpOperation | undefined => {
    try {
      return start()
    } catch (error) {
      onFault(error)
      return undefined
    }
  }
  return {
    startServed: (request) => safely(() => startServed(request, sdk, onFault)),
    startSent: (request) => safely(() => startSent(request, sdk, onFault)),
  }
}

function startServed(
  request: ServedRequest,
  sdk: Sdk<McpInstruments>,
  onFault: (error: unknown) => void,
): McpOperation {
  const common = commonAttributes(request, 'tcp')
  const own = { ...common, ...idAttributes(request.id) }
  // Baggage comes from the client, whether from a header or from the body, and is not trusted.
  const ambient = propagation.deleteBaggage(context.active())
  const remote = readTraceContext(request.meta)
  const around = remote && trace.getSpanContext(ambient)
  const parent = remote ? trace.setSpanContext(ambient, remote) : ambient
  const links = around ? [{ context: around }] : []
  const options = { kind: SpanKind.SERVER, attributes: own, links }
  const span = sdk.tracer?.startSpan(spanName(request), options, parent)
  return new Operation({ span, parent, common, histogram: sdk.instruments?.server, onFault })
}

function startSent(request: SentRequest, sdk: Sdk<McpInstruments>, onFault: (error: unknown) => void): McpOperation {
  const { server, transport, host, port } = request
  const common = commonAttributes(request, transport)
  const own = {
    ...common,
    ...(host === undefined ? {} : { 'server.address': host }),
    ...(port === undefined ? {} : { 'server.port': port }),
    'toolgate.server': server,
  }
  const parent = context.active()
  const span = sdk.tracer?.startSpan(spanName(request), { kind: SpanKind.CLIENT, attributes: own }, parent)
  return new Operation({ span, parent, common, histogram: sdk.instruments?.client, onFault })
}

type TracedRequest = Pick<ServedRequest, 'method' | 'tool' | 'protocolVersion'>

function spanName({ method, tool }: TracedRequest): string {
  return method === 'tools/call' ? `${method} ${tool ?? UNKNOWN_TOOL}` : method
}

/** Returns the attributes of both spans and metrics. Each has only a few values. */
function commonAttributes({ method, tool, protocolVersion }: TracedRequest, transport: Transport): Attributes {
  return {
    'mcp.method.name': method,
    ...(method === 'tools/call'
      ? { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool ?? UNKNOWN_TOOL }
      : {}),
    ...(protocolVersion === undefined ? {} : { 'mcp.protocol.version': protocolVersion }),
    'network.transport': transport,
    ...(transport === 'tcp' ? { 'network.protocol.name': 'http' } : {}),
  }
}

function idAttributes(id: string | number | undefined): Attributes {
  return id === undefined ? {} : { 'jsonrpc.request.id': String(id).slice(0, MAX_ID) }
}

interface Started {
  readonly span: Span | undefined
  readonly parent: Context
  readonly common: Attributes
  readonly histogram: Histogram | undefined
  readonly onFault: (error: unknown) => void
}

class Operation implements McpOperation {
  readonly meta: { readonly traceparent: string } | undefined
  readonly #started: Started
  readonly #startedMs: number
  readonly #context: Context | undefined
  #failure: Attributes | undefined
  #ended = false

  constructor(started: Started) {
    const { span, parent } = started
    this.#started = started
    this.#startedMs = performance.now()
    this.#context = span && trace.setSpan(parent, span)
    this.meta = span?.isRecording() ? { traceparent: toTraceparent(span.spanContext()) } : undefined
  }

  within<T>(work: () => T): T {
    return this.#context ? runWithin(this.#context, work, this.#started.onFault) : work()
  }

  sentAs(id: string | number): void {
    this.#try(() => this.#started.span?.setAttributes(idAttributes(id)))
  }

  fail(type: string, rpcCode?: number): void {
    this.#failure ??= {
      'error.type': type,
      ...(rpcCode === undefined ? {} : { 'rpc.response.status_code': String(rpcCode) }),
    }
  }

  end(): void {
    if (this.#ended) return
    this.#ended = true
    const { span, common, histogram } = this.#started
    const failure = this.#failure
    this.#try(() => {
      if (failure) span?.setAttributes(failure).setStatus({ code: SpanStatusCode.ERROR })
    })
    this.#try(() => span?.end())
    this.#try(() => histogram?.record((performance.now() - this.#startedMs) / 1000, { ...common, ...failure }))
  }

  #try(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.#started.onFault(error)
    }
  }
}

/** W3C Trace Context §3.2.2. A later version may add fields after the flags. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const MAX_TRACEPARENT = 128
const MAX_TRACESTATE = 512

/**
 * Returns the client's span from the `_meta` of its request (MCP SEP-414), if there is one.
 *
 * `baggage` is ignored: it is untrusted, and would be sent to every server.
 */
export function readTraceContext(meta: unknown): SpanContext | undefined {
  if (!isObject(meta)) return undefined
  const { traceparent, tracestate } = meta
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(traceparent) ?? []
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
  const remote = { traceId, spanId, traceFlags, isRemote: true }
  if (typeof tracestate !== 'string' || tracestate.length > MAX_TRACESTATE) return remote
  return { ...remote, traceState: createTraceState(tracestate) }
}

/** Returns the `traceparent` of a span. Its `tracestate` is not sent, as servers belong to others. */
export function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`
}

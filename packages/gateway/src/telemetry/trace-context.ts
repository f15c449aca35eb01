import { createTraceState, type SpanContext, TraceFlags } from '@opentelemetry/api'

/** W3C Trace Context §3.2.2. A later version may say more behind the flags; what is known of it stays where it is. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const MAX_TRACEPARENT = 128
const MAX_TRACESTATE = 512

/**
 * Gives the span that a client is in, from the `_meta` of its request (MCP SEP-414); `undefined` where it names none.
 *
 * Its `baggage` is not looked at: it is what anybody wrote, and would go on to every server behind.
 */
export function readTraceContext(meta: unknown): SpanContext | undefined {
  if (typeof meta !== 'object' || meta === null) return undefined
  const { traceparent, tracestate } = meta as { traceparent?: unknown; tracestate?: unknown }
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) return undefined
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(traceparent) ?? []
  if (version === undefined || (version === '00' && more !== undefined)) return undefined
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
  const context = { traceId, spanId, traceFlags, isRemote: true }
  if (typeof tracestate !== 'string' || tracestate.length > MAX_TRACESTATE) return context
  return { ...context, traceState: createTraceState(tracestate) }
}

/** Gives the `traceparent` of a span. Its `tracestate` stays here: servers behind are others' houses. */
export function toTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, '0')}`
}

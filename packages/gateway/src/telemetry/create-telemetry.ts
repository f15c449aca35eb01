import type { Telemetry } from '@toolgate/core'
import type { FindTracing } from './tracing.ts'

interface GatewayTelemetry {
  /** The telemetry that the gate uses for calls. */
  readonly calls: Telemetry
  readonly tracing: FindTracing
}

/** The key under which every copy of `@opentelemetry/api` 1.x stores its registrations. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/**
 * Returns a telemetry that uses OpenTelemetry once an SDK is registered.
 *
 * The API is loaded only then, because it costs 15 ms and several megabytes, and most gateways run without it. An SDK
 * that is registered before the start is used from the first request.
 */
export async function createTelemetry(onFault: (error: unknown) => void): Promise<GatewayTelemetry> {
  let loaded: { readonly calls: Telemetry; readonly tracing: FindTracing } | undefined
  let loading: Promise<void> | undefined

  const load = async (): Promise<void> => {
    const [{ openTelemetry }, { createMcpTracing }] = await Promise.all([
      import('@toolgate/core/telemetry'),
      import('./mcp-tracing.ts'),
    ])
    loaded = { calls: openTelemetry({ onFault }), tracing: createMcpTracing(onFault) }
  }
  const current = (): typeof loaded => {
    if (!loaded && REGISTERED in globalThis) loading ??= load().catch(onFault)
    return loaded
  }

  if (REGISTERED in globalThis) await (loading = load())
  return {
    calls: { startCall: (call) => current()?.calls.startCall(call) },
    tracing: () => current()?.tracing(),
  }
}

import type { Telemetry } from '@toolgate/core'
import type { FindTracing, McpTracing } from './tracing.ts'

export interface GatewayTelemetry {
  /** For the gate. */
  readonly calls: Telemetry
  readonly tracing: FindTracing
}

/** Where `@opentelemetry/api` 1.x keeps what was registered with it, whichever copy of it did. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/**
 * Follows what the gateway does with OpenTelemetry, once an SDK is registered.
 *
 * The API itself is loaded then, and not before: most gateways run without, and it takes 15 ms and some megabytes. An
 * SDK that is there already is followed from the first request on.
 */
export async function createTelemetry(onFault: (error: unknown) => void): Promise<GatewayTelemetry> {
  let loaded: { readonly calls: Telemetry; readonly tracing: () => McpTracing | undefined } | undefined
  let loading: Promise<void> | undefined

  const load = async (): Promise<void> => {
    const [{ openTelemetry }, { createMcpTracing }] = await Promise.all([
      import('@toolgate/core/telemetry'),
      import('./mcp-tracing.ts'),
    ])
    loaded = { calls: openTelemetry({ onFault }), tracing: createMcpTracing(onFault) }
  }
  const current = (): typeof loaded => {
    if (loaded) return loaded
    if (REGISTERED in globalThis) loading ??= load().catch(onFault)
    return undefined
  }

  if (REGISTERED in globalThis) await (loading = load())
  return {
    calls: { startCall: (call) => current()?.calls.startCall(call) },
    tracing: () => current()?.tracing(),
  }
}

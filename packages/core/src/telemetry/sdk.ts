import {
  type Context,
  context,
  createNoopMeter,
  type Meter,
  type MeterProvider,
  metrics,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { checkShape, shapeOf } from '@toolgate/values'
import { runOnce } from './run-once.ts'

/** The OpenTelemetry SDK that is registered in this process. */
export interface Sdk<Instruments> {
  readonly tracer: Tracer | undefined
  readonly instruments: Instruments | undefined
}

export interface SdkOptions<Instruments> {
  /** The name of the instrumentation, such as `@toolgate/core`. */
  readonly name: string
  readonly version?: string | undefined
  /** Default: the tracer of the registered SDK, even if it is registered later. */
  readonly tracer?: Tracer | undefined
  readonly meter?: Meter | undefined
  createInstruments(meter: Meter): Instruments
}

const OPTIONS = shapeOf<SdkOptions<unknown>>({
  name: true,
  version: true,
  tracer: true,
  meter: true,
  createInstruments: true,
})

/**
 * Returns a function that returns the registered SDK; `undefined` if there is none.
 *
 * It only checks the current provider until that changes, so asking before each call costs a few nanoseconds, and an SDK
 * that is registered later is found.
 */
export function createSdkFinder<Instruments>(options: SdkOptions<Instruments>): () => Sdk<Instruments> | undefined {
  checkShape('createSdkFinder', options, OPTIONS)
  const { name, version, createInstruments } = options
  let tracing: unknown
  let metering: unknown
  let found: Sdk<Instruments> | undefined

  return () => {
    const tracerProvider = options.tracer ?? providerOfTracers()
    const meterProvider = options.meter ?? metrics.getMeterProvider()
    if (tracerProvider === tracing && meterProvider === metering) return found
    const tracer = options.tracer ?? findTracer(name, version)
    const meter = options.meter ?? findMeter(meterProvider as MeterProvider, name, version)
    found = tracer || meter ? { tracer, instruments: meter && createInstruments(meter) } : undefined
    tracing = tracerProvider
    metering = meterProvider
    return found
  }
}

/** Runs work once in a context of OpenTelemetry, even if the context manager throws; `onFault` receives that error. */
export function runWithin<T>(within: Context, work: () => T, onFault: (error: unknown) => void): T {
  return runOnce((step) => context.with(within, step), work, onFault)
}

/** The API returns a stand-in, the same before and after an SDK is registered. Its delegate shows whether there is an SDK. */
interface StandIn {
  getDelegate?(): unknown
  getDelegateTracer?(name: string, version?: string): Tracer | undefined
}

function providerOfTracers(): unknown {
  const provider = trace.getTracerProvider() as StandIn
  return provider.getDelegate ? provider.getDelegate() : provider
}

function findTracer(name: string, version: string | undefined): Tracer | undefined {
  const provider = trace.getTracerProvider()
  const { getDelegateTracer } = provider as StandIn
  return getDelegateTracer ? getDelegateTracer.call(provider, name, version) : provider.getTracer(name, version)
}

function findMeter(provider: MeterProvider, name: string, version: string | undefined): Meter | undefined {
  const meter = provider.getMeter(name, version)
  return meter === createNoopMeter() ? undefined : meter
}

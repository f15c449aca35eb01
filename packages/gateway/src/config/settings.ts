import path from 'node:path'
import type { z } from 'zod'
import { isLoopback } from './address.ts'
import type { AuditConfig, GatewayConfig, MetricsConfig, SearchConfig, StateConfig } from './config.ts'
import { checkShape, found } from './explain.ts'
import { checkEntry } from './policy.ts'
import { has, lengthOf, type Reading } from './reading.ts'
import {
  auditSchema,
  definitionsSchema,
  drainSchema,
  limitSchema,
  limitsSchema,
  listenSchema,
  metricsSchema,
  searchSchema,
  pinsSchema,
  stateSchema,
} from './schema.ts'

export const DEFAULT_HOST = '127.0.0.1'
export const DEFAULT_PORT = 8787

/** Reads `listen`. Beyond loopback, callers must have keys, and not ones that everybody knows. */
export function readListen({ source }: Reading): GatewayConfig['listen'] {
  const input = has(source, ['listen']) ? checkShape(source, ['listen'], listenSchema) : {}
  const host = input?.host ?? DEFAULT_HOST
  const written = source.get(['listen', 'host'])?.value
  if (typeof written === 'string' && !isLoopback(written)) {
    const callers = lengthOf(source, ['callers'])
    if (callers === 0)
      source.report(
        ['listen', 'host'],
        `${found(source, ['listen', 'host'])} and no callers, expected loopback (127.0.0.1), or callers with keys`,
      )
    for (let i = 0; i < callers; i++) {
      const key = source.get(['callers', i, 'key'])?.value
      if (typeof key === 'string' && key.startsWith('demo-'))
        source.report(['callers', i, 'key'], `found a demo key with listen.host beyond loopback, expected a secret one`)
    }
  }
  const origins = input?.origins
  return { host, port: input?.port ?? DEFAULT_PORT, ...(origins === undefined ? {} : { origins }) }
}

/** Reads `limits`: text or an object each. */
export function readLimits(reading: Reading): GatewayConfig['limits'] {
  const { source } = reading
  const at = source.get(['limits'])
  if (at && !at.items) checkShape(source, ['limits'], limitsSchema)
  return Array.from({ length: lengthOf(source, ['limits']) }, (_, i) => i).flatMap((i) => {
    const limit = checkShape(source, ['limits', i], limitSchema)
    if (limit !== undefined) checkEntry(reading, ['limits', i], { limits: limit })
    return limit === undefined ? [] : [limit]
  })
}

const DEFAULT_FILES = { sqlite: '.toolgate/audit.db', jsonl: '.toolgate/audit.jsonl' } as const

/** Reads `audit`. Without it, the audit is a SQLite file beside the configuration. */
export function readAudit({ source, configDir }: Reading): AuditConfig {
  const input = has(source, ['audit']) ? checkShape(source, ['audit'], auditSchema) : {}
  const { store = 'sqlite', mode = 'batched' } = input ?? {}
  if (store === 'memory') {
    for (const key of ['path', 'checkpoints'] as const) {
      if (input?.[key] !== undefined)
        source.report(
          ['audit', key],
          `found ${key === 'path' ? 'a path' : key} for the store "memory", expected none`,
          {
            atKey: true,
          },
        )
    }
    return { store, mode, ...previewOf(input) }
  }
  return {
    store,
    path: path.resolve(configDir, input?.path ?? DEFAULT_FILES[store]),
    mode,
    ...previewOf(input),
    ...checkpointsOf(input, configDir),
  }
}

type AuditInput = z.infer<typeof auditSchema> | undefined

function previewOf(input: AuditInput): Pick<AuditConfig, 'preview'> {
  return input?.preview === undefined ? {} : { preview: input.preview }
}

function checkpointsOf(input: AuditInput, configDir: string): Pick<AuditConfig, 'checkpoints'> {
  const written = input?.checkpoints
  if (written === undefined || written === false) return written === undefined ? {} : { checkpoints: false }
  const { path: file, keyFile, everyRecords, everySeconds } = written
  return {
    checkpoints: {
      ...(file === undefined ? {} : { path: path.resolve(configDir, file) }),
      ...(keyFile === undefined ? {} : { keyFile: path.resolve(configDir, keyFile) }),
      ...(everyRecords === undefined ? {} : { everyRecords }),
      ...(everySeconds === undefined ? {} : { everyMs: everySeconds * 1000 }),
    },
  }
}

/** Reads `pins` and `definitions`: what is done about definitions that change, or that hide something. */
export function readDefinitionModes({ source }: Reading): Pick<GatewayConfig, 'pins' | 'definitions'> {
  const pins = has(source, ['pins']) ? checkShape(source, ['pins'], pinsSchema) : undefined
  const definitions = has(source, ['definitions']) ? checkShape(source, ['definitions'], definitionsSchema) : undefined
  return { ...(pins === undefined ? {} : { pins }), ...(definitions === undefined ? {} : { definitions }) }
}

/** Reads `state`. Without it, the state is a SQLite file beside the configuration. */
export function readState({ source, configDir }: Reading, audit: AuditConfig): StateConfig {
  const input = has(source, ['state']) ? checkShape(source, ['state'], stateSchema) : {}
  const { store = 'sqlite' } = input ?? {}
  if (store === 'memory') {
    if (input?.path !== undefined)
      source.report(['state', 'path'], 'found a path for the store "memory", expected none', { atKey: true })
    return { store }
  }
  const file = path.resolve(configDir, input?.path ?? '.toolgate/state.db')
  if (file === audit.path)
    source.report(
      input?.path === undefined ? ['audit', 'path'] : ['state', 'path'],
      'found one file for the audit and the state, expected one for each',
    )
  return { store, path: file }
}

/** Reads `search`. Without it, the tools that find others are offered where something is locked. */
export function readSearch({ source }: Reading): SearchConfig {
  const input = has(source, ['search']) ? checkShape(source, ['search'], searchSchema) : 'auto'
  const { offer = 'auto', above } = typeof input === 'object' ? input : { offer: input }
  return { offer, ...(above === undefined ? {} : { above }) }
}

/** Reads `drainMs`. */
export function readDrain({ source }: Reading): Pick<GatewayConfig, 'drainMs'> {
  const drainMs = has(source, ['drainMs']) ? checkShape(source, ['drainMs'], drainSchema) : undefined
  return drainMs === undefined ? {} : { drainMs }
}

/** Reads `metrics`. Without it, they need a console key. */
export function readMetrics({ source }: Reading): MetricsConfig {
  const input = has(source, ['metrics']) ? checkShape(source, ['metrics'], metricsSchema) : {}
  return { public: input?.public ?? false }
}

import path from 'node:path'
import { inspect } from 'node:util'
import { ConfigError } from '@toolgate/core'
import type { AuditInputs } from '@toolgate/core/audit'
import { createRedactor } from '@toolgate/values/redact'
import type * as z from 'zod'
import type { AuditConfig, CheckpointConfig, GatewayConfig, RotationConfig, StateConfig } from './config.ts'
import { CertificateError, readCertificate } from '../util/certificate.ts'
import { isLoopback } from './loopback.ts'
import { checkEntry } from './policy.ts'
import {
  checkShape,
  found,
  has,
  lengthOf,
  readEach,
  readIfPresent,
  type Reading,
  readSection,
  reportIn,
} from './reading.ts'
import { approvalsSchema, callsShellSchema, capSchema, concurrencySchema, drainSchema } from './schema/calls.ts'
import { auditSchema, redactSchema, stateSchema } from './schema/audit.ts'
import { definitionsSchema, instancesSchema, instructionsSchema, namesSchema, pinsSchema } from './schema/servers.ts'
import { historySchema } from './schema/policy.ts'
import { limitSchema } from './schema/limits.ts'
import { limitsSchema, searchSchema, secretCommandsSchema, watchSchema } from './schema.ts'
import { listenSchema, metricsSchema, publicUrlSchema } from './schema/listen.ts'
import { readStores } from './stores.ts'

type SectionValues = Pick<
  GatewayConfig,
  | 'listen'
  | 'publicUrl'
  | 'names'
  | 'instructions'
  | 'instances'
  | 'limits'
  | 'calls'
  | 'approvals'
  | 'redact'
  | 'metrics'
  | 'search'
  | 'pins'
  | 'definitions'
  | 'drainMs'
  | 'secretCommands'
  | 'watch'
  | 'history'
  | 'state'
  | 'stores'
  | 'replica'
> & { readonly audit: AuditConfig }

/** The sections that need no conversion. */
const PLAIN = {
  names: namesSchema,
  instructions: instructionsSchema,
  pins: pinsSchema,
  definitions: definitionsSchema,
  drainMs: drainSchema,
  publicUrl: publicUrlSchema,
  watch: watchSchema,
  history: historySchema,
  secretCommands: secretCommandsSchema,
}

/** Reads the sections that do not depend on servers, groups and policies, with defaults. */
export function readSettings(reading: Reading): SectionValues {
  const { source, configDir } = reading
  const audit = readSection(source, 'audit', auditIn(configDir, has(source, ['stores'])))
  const engines = readStores(reading)
  const state = has(source, ['stores']) ? undefined : readSection(source, 'state', stateIn(configDir))
  checkFiles(reading, audit, state)
  const plain = readIfPresent(source, PLAIN)
  if (plain.watch === true && has(source, ['stores']))
    source.report(['watch'], 'found true with "stores", expected false, as replicas run what is published')
  return {
    listen: readListen(reading),
    instances: readSection(source, 'instances', instancesIn(configDir)),
    limits: readLimits(reading),
    calls: { ...readSection(source, 'calls', callsShellSchema), concurrency: readCaps(reading) },
    approvals: readSection(source, 'approvals', approvalsSchema),
    audit,
    ...(state && { state }),
    ...engines,
    redact: readSection(source, 'redact', redact),
    metrics: readSection(source, 'metrics', metrics),
    search: readSection(source, 'search', search),
    ...plain,
  }
}

/** Reads the certificate once, so that a problem with it has the line that names the file. */
function listenIn(configDir: string) {
  return listenSchema.transform(({ host = '127.0.0.1', port = 8787, tls, ...rest }, ctx): GatewayConfig['listen'] => {
    if (tls === undefined) return { host, port, ...rest }
    const files = { certFile: path.resolve(configDir, tls.certFile), keyFile: path.resolve(configDir, tls.keyFile) }
    try {
      readCertificate(files)
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      reportIn(ctx, ['tls', error.field], error.message)
    }
    return { host, port, tls: files, ...rest }
  })
}

/** Reads `listen`. Beyond loopback, callers must have secret keys. */
function readListen({ source, configDir }: Reading): GatewayConfig['listen'] {
  const host = source.get(['listen', 'host'])?.value
  if (typeof host === 'string' && !isLoopback(host)) {
    const callers = lengthOf(source, ['callers'])
    if (callers === 0 && !has(source, ['oauth']))
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
  return readSection(source, 'listen', listenIn(configDir))
}

/** Each limit is text or an object. They are checked one by one. */
function readLimits(reading: Reading): GatewayConfig['limits'] {
  return readEntries(reading, ['limits'], limitsSchema, limitSchema, (limit) => ({ limits: limit }))
}

function readCaps(reading: Reading): NonNullable<GatewayConfig['calls']>['concurrency'] {
  return readEntries(reading, ['calls', 'concurrency'], concurrencySchema, capSchema, (cap) => ({ concurrency: cap }))
}

function readEntries<T extends z.ZodType>(
  reading: Reading,
  at: readonly string[],
  list: z.ZodArray,
  schema: T,
  toEntry: (entry: z.infer<T>) => Parameters<typeof checkEntry>[2],
): z.infer<T>[] {
  return readEach(reading.source, at, list, (place) => {
    const entry = checkShape(reading.source, place, schema)
    if (entry !== undefined) checkEntry(reading, place, toEntry(entry))
    return entry
  }).slice()
}

const DEFAULT_FOLDER = '.toolgate/audit'
const DEFAULT_FILES = { sqlite: '.toolgate/audit.db', jsonl: '.toolgate/audit.jsonl' } as const

/**
 * By default, the audit is the one that all replicas share. Without replicas, it is a SQLite file beside the
 * configuration.
 */
function auditIn(configDir: string, hasStores: boolean) {
  return auditSchema.transform((input, ctx): AuditConfig => {
    const {
      store = hasStores ? 'postgres' : 'sqlite',
      mode = 'batched',
      path: file,
      checkpoints,
      retain,
      rotate,
      durable,
      witness,
      inputs,
      ...rest
    } = input
    const preview = { ...rest, ...(inputs && { inputs: toInputs(inputs) }) }
    if (durable !== undefined && store !== 'postgres')
      reportIn(ctx, ['durable'], `found "${durable}" for the store "${store}", expected stores.postgres`)
    if (witness !== undefined && store !== 'postgres')
      reportIn(ctx, ['witness'], `found a witness for the store "${store}", expected postgres`)
    if (rotate !== undefined && store !== 'jsonl')
      reportIn(ctx, ['rotate'], `found a rotation for the store "${store}", expected jsonl`)
    if (store === 'postgres') {
      if (!hasStores) reportIn(ctx, ['store'], 'found "postgres" without "stores", expected stores.postgres')
      const isOnDisk = durable === 'disk'
      for (const key of isOnDisk ? (['mode'] as const) : (['path', 'mode'] as const))
        if (input[key] !== undefined) reportIn(ctx, [key], `found a ${key} for the store "postgres", expected none`)
      return {
        store,
        mode: 'required',
        ...preview,
        ...(isOnDisk ? { durable, path: path.resolve(configDir, file ?? DEFAULT_FOLDER) } : {}),
        ...(retain === undefined ? {} : { retainMs: toMs(retain) }),
        ...sharedCheckpoints(checkpoints, configDir, ctx),
        ...toWitness(witness, configDir, ctx),
      }
    }
    if (store === 'memory') {
      if (file !== undefined) reportIn(ctx, ['path'], 'found a path for the store "memory", expected none')
      if (checkpoints !== undefined)
        reportIn(ctx, ['checkpoints'], 'found checkpoints for the store "memory", expected none')
      if (retain !== undefined)
        reportIn(ctx, ['retain'], 'found a time for the store "memory", which keeps the newest 10,000 records')
      return { store, mode, ...preview }
    }
    const resolved = path.resolve(configDir, file ?? DEFAULT_FILES[store])
    const signed = checkpoints && toCheckpoints(checkpoints, configDir)
    if (retain !== undefined && signed === false)
      reportIn(ctx, ['retain'], 'found a time without checkpoints, which prove what was removed')
    return {
      store,
      path: resolved,
      mode,
      ...preview,
      ...(signed === undefined ? {} : { checkpoints: signed }),
      ...(retain === undefined ? {} : { retainMs: toMs(retain) }),
      ...(rotate === undefined ? {} : { rotate: toRotation(rotate) }),
    }
  })
}

const UNIT_MS = { h: 3_600_000, d: 86_400_000 } as const

/** Returns a duration such as `90d` in milliseconds. The schema has already checked its form. */
function toMs(time: string): number {
  return Number.parseInt(time, 10) * (time.endsWith('h') ? UNIT_MS.h : UNIT_MS.d)
}

function toInputs(inputs: NonNullable<z.infer<typeof auditSchema>['inputs']>): AuditInputs {
  if (typeof inputs === 'string') return inputs
  const { keepFor, ...sealed } = inputs
  return { ...sealed, ...(keepFor !== undefined && { keepForMs: toMs(keepFor) }) }
}

function toRotation({ every, ...bytes }: NonNullable<z.infer<typeof auditSchema>['rotate']>): RotationConfig {
  return every === undefined ? bytes : { ...bytes, everyMs: toMs(every) }
}

type CheckpointsInput = Exclude<NonNullable<z.infer<typeof auditSchema>['checkpoints']>, false>

function toCheckpoints(input: CheckpointsInput, configDir: string): CheckpointConfig {
  const { path: file, keyFile, everySeconds, ...rest } = input
  return {
    ...rest,
    ...(file === undefined ? {} : { path: path.resolve(configDir, file) }),
    ...(keyFile === undefined ? {} : { keyFile: path.resolve(configDir, keyFile) }),
    ...(everySeconds === undefined ? {} : { everyMs: everySeconds * 1000 }),
  }
}

/** In Postgres, checkpoints are in the database too, and each covers everything until then. */
function sharedCheckpoints(
  input: z.infer<typeof auditSchema>['checkpoints'],
  configDir: string,
  ctx: z.RefinementCtx,
): Pick<AuditConfig, 'checkpoints'> {
  if (input === undefined) return {}
  const unknown = input === false ? [] : (['path', 'everyRecords'] as const).filter((key) => input[key] !== undefined)
  if (input === false)
    reportIn(ctx, ['checkpoints'], 'found false for the store "postgres", expected an object: it is always signed')
  for (const key of unknown)
    reportIn(ctx, ['checkpoints', key], 'found a value for the store "postgres", expected none')
  return input === false ? {} : { checkpoints: toCheckpoints(input, configDir) }
}

function toWitness(
  input: z.infer<typeof auditSchema>['witness'],
  configDir: string,
  ctx: z.RefinementCtx,
): Pick<AuditConfig, 'witness'> {
  if (input === undefined) return {}
  const { file, url, key } = input
  if ((url === undefined) !== (key === undefined))
    reportIn(ctx, ['witness'], 'found a url without a key or a key without a url, expected both')
  if (url !== undefined && !/^https?:\/\//.test(url))
    reportIn(ctx, ['witness', 'url'], 'found another text, expected http:// or https://')
  return { witness: { ...input, ...(file === undefined ? {} : { file: path.resolve(configDir, file) }) } }
}

/** By default, the state is a SQLite file beside the configuration. */
function stateIn(configDir: string) {
  return stateSchema.transform(({ store = 'sqlite', path: file }, ctx): StateConfig => {
    if (store === 'sqlite') return { store, path: path.resolve(configDir, file ?? '.toolgate/state.db') }
    if (file !== undefined) reportIn(ctx, ['path'], 'found a path for the store "memory", expected none')
    return { store }
  })
}

/** By default, the folders of instances are beside the configuration. */
function instancesIn(configDir: string) {
  return instancesSchema.transform(({ path: folder, ...bounds }) => ({
    ...bounds,
    path: path.resolve(configDir, folder ?? '.toolgate/instances'),
  }))
}

function checkFiles({ source }: Reading, audit: AuditConfig, state: StateConfig | undefined): void {
  if (state?.path !== undefined && state.path === audit.path)
    source.report(
      has(source, ['state', 'path']) ? ['state', 'path'] : ['audit', 'path'],
      'found one file for the audit and the state, expected one for each',
    )
  const { path: checkpoints } = audit.checkpoints || {}
  if (checkpoints !== undefined && [audit.path, state?.path].includes(checkpoints))
    source.report(
      ['audit', 'checkpoints', 'path'],
      'found the file of the audit or the state, expected one for the checkpoints alone',
    )
}

/** By default, the metrics need a console key. */
const metrics = metricsSchema.transform((input) => ({ public: input.public ?? false }))

/** By default, the search tools are offered to callers with locked groups. */
const search = searchSchema.transform((input) =>
  typeof input === 'string' ? { offer: input } : { ...input, offer: input.offer ?? ('auto' as const) },
)

/** Keys and patterns are checked one by one, so that every problem is reported. */
const redact = redactSchema.transform(({ keys = [], patterns = [] }, ctx) => {
  for (const [i, key] of keys.entries()) reportUnusable(ctx, ['keys', i], { keys: [key] })
  for (const [i, pattern] of patterns.entries()) reportUnusable(ctx, ['patterns', i], { patterns: [pattern] })
  return { keys, patterns }
})

function reportUnusable(
  ctx: z.RefinementCtx,
  at: readonly (string | number)[],
  options: Parameters<typeof createRedactor>[0],
): void {
  try {
    createRedactor(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    reportIn(ctx, at, error.problem)
  }
}

/** Variables that are not secret. Masking their values would hide every path. */
const NO_SECRETS: ReadonlySet<string> = new Set([
  'HOME',
  'HOST',
  'HOSTNAME',
  'LANG',
  'LOGNAME',
  'NODE_ENV',
  'PATH',
  'PORT',
  'PWD',
  'SHELL',
  'TEMP',
  'TMP',
  'TMPDIR',
  'TZ',
  'USER',
  'USERNAME',
  'USERPROFILE',
])

const MIN_LENGTH = 6

/** Collects the secrets of a configuration while it is read. */
interface SecretList {
  /** Adds the value of a variable. */
  addFilled(name: string, value: string): void
  addKey(key: string): void
  /** Returns the secrets. Only the length of the list is printed. */
  list(): readonly string[]
}

export function createSecretList(): SecretList {
  const secrets = new Set<string>()
  return {
    addFilled(name, value) {
      if (!NO_SECRETS.has(name) && value.length >= MIN_LENGTH) secrets.add(value)
    },
    addKey(key) {
      // Demo keys are public, and contain the names of their users.
      if (!key.startsWith('demo-')) secrets.add(key)
    },
    list: () => conceal([...secrets]),
  }
}

function conceal(secrets: readonly string[]): readonly string[] {
  const shown = `[${secrets.length} secrets]`
  const hidden = { value: () => shown }
  return Object.defineProperties([...secrets], { toJSON: hidden, [inspect.custom]: hidden })
}

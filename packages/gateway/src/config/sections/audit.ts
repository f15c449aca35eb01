import path from 'node:path'
import type { AuditInputs } from '@toolgate/core/audit'
import type * as z from 'zod'
import type { AuditConfig, CheckpointConfig, RotationConfig } from '../config.ts'
import { has, reportIn } from '../reading.ts'
import { auditSchema } from '../schema/audit.ts'
import { type Section, withDefaults } from '../section.ts'

export const audit: Section<AuditConfig> = withDefaults(auditSchema, ({ configDir, source }) =>
  auditIn(configDir, has(source, ['stores'])),
)

const DEFAULT_FOLDER = '.toolgate/audit'
const DEFAULT_FILES = { sqlite: '.toolgate/audit.db', jsonl: '.toolgate/audit.jsonl' } as const

/**
 * By default, all replicas share one audit. Without replicas, it is a SQLite file beside the
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

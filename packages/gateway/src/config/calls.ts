import { callsShellSchema, capSchema, concurrencySchema, approvalsSchema } from './calls-schema.ts'
import type { ApprovalsConfig, CallsConfig } from './config.ts'
import { checkShape } from './explain.ts'
import { checkEntry } from './policy.ts'
import { has, lengthOf, type Reading } from './reading.ts'

/** Reads `calls`. */
export function readCalls(reading: Reading): CallsConfig {
  const { source } = reading
  if (!has(source, ['calls'])) return { concurrency: [] }
  const { deadlineMs, maxOutputChars } = checkShape(source, ['calls'], callsShellSchema) ?? {}
  return {
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(maxOutputChars === undefined ? {} : { maxOutputChars }),
    concurrency: readCaps(reading),
  }
}

function readCaps(reading: Reading): CallsConfig['concurrency'] {
  const { source } = reading
  const at = ['calls', 'concurrency']
  const written = source.get(at)
  if (written && !written.items) checkShape(source, at, concurrencySchema)
  return Array.from({ length: lengthOf(source, at) }, (_, i) => [...at, i]).flatMap((place) => {
    const cap = checkShape(source, place, capSchema)
    if (cap === undefined) return []
    checkEntry(reading, place, { concurrency: cap })
    return [cap]
  })
}

/** Reads `approvals`. */
export function readApprovals({ source }: Reading): ApprovalsConfig {
  const input = has(source, ['approvals']) ? checkShape(source, ['approvals'], approvalsSchema) : undefined
  return input?.ttlMs === undefined ? {} : { ttlMs: input.ttlMs }
}

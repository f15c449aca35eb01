import { inspect } from 'node:util'
import { ConfigError } from '@toolgate/core'
import { createRedactor } from '@toolgate/core/redact'
import type { RedactConfig } from './config.ts'
import { checkShape } from './explain.ts'
import { has, type Reading } from './reading.ts'
import { redactSchema } from './schema.ts'

/** Reads `redact`: each key and pattern by itself, so that one bad one does not hide another. */
export function readRedact({ source }: Reading): RedactConfig {
  const input = has(source, ['redact']) ? checkShape(source, ['redact'], redactSchema) : {}
  const { keys = [], patterns = [] } = input ?? {}
  keys.forEach((key, i) => check({ keys: [key] }, (problem) => source.report(['redact', 'keys', i], problem)))
  patterns.forEach((pattern, i) =>
    check({ patterns: [pattern] }, (problem) => source.report(['redact', 'patterns', i], problem)),
  )
  return { keys, patterns }
}

function check(options: Parameters<typeof createRedactor>[0], report: (problem: string) => void): void {
  try {
    createRedactor(options)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    report(error.problem)
  }
}

/** Variables that say where and as whom a process runs: to hide their values would hide every path. */
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

/** The secrets of a configuration, gathered while it is read. */
export interface SecretList {
  /** Notes what a variable stood for. */
  addFilled(name: string, value: string): void
  addKey(key: string): void
  /** Shows its length alone where it is printed. */
  list(): readonly string[]
}

export function createSecretList(): SecretList {
  const secrets = new Set<string>()
  return {
    addFilled(name, value) {
      if (!NO_SECRETS.has(name) && value.length >= MIN_LENGTH) secrets.add(value)
    },
    addKey(key) {
      // Everybody knows the keys of the demo, and its users are named in them.
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

import type { Probe } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/core/internal'

export interface EnvProbeOptions {
  /** The value that it must have. Default: any but a blank one. */
  readonly equals?: string | undefined
  /** Default: the process's. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const OPTIONS = shapeOf<EnvProbeOptions>({ equals: true, env: true })

/** Asks whether an environment variable is set and not blank, or is exactly so. Its value is never told. */
export function envProbe(name: string, options: EnvProbeOptions = {}): Probe {
  checkShape('envProbe', options, OPTIONS)
  const { equals, env = process.env } = options
  return {
    key: `env ${JSON.stringify([name, equals ?? null])}`,
    kind: 'env',
    what: `the environment variable ${name}`,
    ask() {
      const value = Object.hasOwn(env, name) ? env[name] : undefined
      if (equals !== undefined && value === equals) return true
      if (value === undefined || value.trim() === '') return no(`the environment variable ${name} is not set`)
      return equals === undefined || no(`the environment variable ${name} does not have the value it should`)
    },
  }
}

function no(reason: string): { available: false; reason: string } {
  return { available: false, reason }
}

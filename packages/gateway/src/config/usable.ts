import { ConfigError } from '@toolgate/core'
import type { GatewayConfig } from './config.ts'
import { saysNothing } from './sections/policy.ts'

/** @throws {ConfigError} for a configuration with which a gateway must not run */
export function checkUsable({ policy, notRun = [] }: GatewayConfig): void {
  if (notRun.length > 0)
    throw new ConfigError('secretCommands', `were not run (${notRun.join(', ')}): read the file with readConfig`)
  if (saysNothing(policy))
    throw new ConfigError('policy', 'would let every key call every tool; use [{ allow: ["*"] }] to mean that')
}

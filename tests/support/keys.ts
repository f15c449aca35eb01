import { createHash } from 'node:crypto'
import type { GatewayConfig } from '@toolgate/gateway'

type CallerConfig = GatewayConfig['callers'][number]

/** The callers of the quickstart: three agents with a key each, and a person. */
export const KEYS = {
  viewer: 'demo-viewer',
  operator: 'demo-operator',
  admin: 'demo-admin',
  console: 'demo-console',
} as const
export type Who = keyof typeof KEYS

export const CALLERS: readonly CallerConfig[] = [
  callerConfig(KEYS.viewer, { user: 'viewer', roles: ['viewer'] }),
  callerConfig(KEYS.operator, { user: 'operator', roles: ['operator'] }),
  callerConfig(KEYS.admin, { user: 'admin', roles: ['admin'] }),
  callerConfig(KEYS.console, { user: 'owner', roles: ['approver'] }, 'console'),
]

export function callerConfig(
  key: string,
  caller: CallerConfig['caller'],
  kind: CallerConfig['for'] = 'mcp',
): CallerConfig {
  return { keyHash: createHash('sha256').update(key).digest(), for: kind, caller }
}

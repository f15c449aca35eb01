import type { GatewayConfig } from './config.ts'
import { isLoopback } from './loopback.ts'
import type { ConfigPath } from './problems.ts'

interface PublicUrlWarning {
  readonly code: 'public_url_missing'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

/** Returns a warning if a policy asks for approval and clients get no link to the approval page. */
export function findPublicUrlWarnings({
  listen,
  publicUrl,
  policy,
  apps = [],
}: Pick<GatewayConfig, 'listen' | 'publicUrl' | 'policy' | 'apps'>): readonly PublicUrlWarning[] {
  const asks = [...policy, ...apps.flatMap((app) => app.policy)].some(({ ask = [] }) => ask.length > 0)
  if (!asks || publicUrl !== undefined || isLoopback(listen.host)) return []
  const text =
    'a policy asks a person, but clients get no link to the page of an approval: add "publicUrl", the origin by which people reach the gateway'
  return [{ code: 'public_url_missing', at: ['listen', 'host'], path: 'listen.host', text }]
}

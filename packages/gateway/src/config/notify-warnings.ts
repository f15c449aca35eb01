import { didYouMean } from '@toolgate/values'
import { bareHost } from '../util/proxy-rules.ts'
import type { GatewayConfig, ReceiverConfig } from './config.ts'
import { isLoopback } from './loopback.ts'
import { type ConfigPath, formatPath } from './problems.ts'

interface NotifyWarning {
  readonly code: 'notify_unlinked' | 'notify_insecure' | 'notify_unmatched'
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
}

type NotifyingConfig = Pick<GatewayConfig, 'approvals' | 'publicUrl' | 'callers' | 'oauth' | 'oidc'>

/** Returns likely mistakes in the receivers of notifications. */
export function findNotifyWarnings(config: NotifyingConfig): readonly NotifyWarning[] {
  const { notify = [] } = config.approvals ?? {}
  if (notify.length === 0) return []
  const unlinked = config.publicUrl === undefined ? [warn('notify_unlinked', ['approvals', 'notify'], UNLINKED)] : []
  return [...unlinked, ...notify.flatMap((receiver, i) => findIn(receiver, ['approvals', 'notify', i], config))]
}

const UNLINKED =
  'messages get no link that other machines can open: add "publicUrl", the origin by which people reach the gateway'

function findIn(receiver: ReceiverConfig, at: ConfigPath, config: NotifyingConfig): readonly NotifyWarning[] {
  const { url: text, format, for: tenants = [] } = receiver
  const url = URL.parse(text)
  const host = url ? bareHost(url.hostname) : ''
  const open = `messages to ${host} can be read on their way, and so can the URL: write https://`
  const isOpen = url?.protocol === 'http:' && !isLoopback(host)
  const chat = CHATS.find(([pattern]) => pattern.test(host))?.[1]
  const other = `${host} takes the format "${chat}" only`
  return [
    ...(isOpen ? [warn('notify_insecure', [...at, 'url'], open)] : []),
    ...(chat !== undefined && chat !== format ? [warn('notify_unmatched', [...at, 'format'], other)] : []),
    ...tenants.flatMap((tenant, t) => findTenant(tenant, [...at, 'for', t], config)),
  ]
}

const CHATS = [
  [/^hooks\.slack(?:-gov)?\.com$/, 'slack'],
  [/\.logic\.azure\.com$|\.api\.powerplatform\.com$|\.webhook\.office\.com$/, 'teams'],
] as const

/** A tenant may also come with a token, which the file does not know. */
function findTenant(
  tenant: string,
  at: ConfigPath,
  { callers, oauth, oidc }: NotifyingConfig,
): readonly NotifyWarning[] {
  const known = new Set(callers.flatMap(({ caller }) => caller.tenant ?? []))
  if (oauth || oidc || known.has(tenant) || callers.some(({ for: use }) => use === 'host')) return []
  return [warn('notify_unmatched', at, `no caller is of the tenant "${tenant}"${didYouMean(tenant, known)}`)]
}

function warn(code: NotifyWarning['code'], at: ConfigPath, text: string): NotifyWarning {
  return { code, at, path: formatPath(at), text }
}

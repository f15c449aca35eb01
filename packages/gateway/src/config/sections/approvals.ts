import type * as z from 'zod'
import type { ApprovalsConfig, ReceiverConfig } from '../config.ts'
import { type Reading, reportIn } from '../reading.ts'
import { approvalsSchema } from '../schema/calls.ts'
import { type Section, withDefaults } from '../section.ts'
import { proxy } from './proxy.ts'

/** What people are asked to approve, and who is told. */
export const approvals: Section<ApprovalsConfig> = withDefaults(approvalsSchema, (reading) =>
  approvalsSchema.transform(({ notify, ...rest }, ctx): ApprovalsConfig => {
    if (notify === undefined) return rest
    return { ...rest, notify: toReceivers(notify, reading, ctx) }
  }),
)

type WrittenReceiver = NonNullable<z.infer<typeof approvalsSchema>['notify']>[number]

/** Names the receivers, and reports two that could not be told apart. */
function toReceivers(
  written: readonly WrittenReceiver[],
  reading: Reading,
  ctx: z.RefinementCtx,
): readonly ReceiverConfig[] {
  const rules = reading.of(proxy)
  const urls = new Set<string>()
  const names = new Set(written.flatMap(({ name }) => name ?? []))
  return written.map(({ name, ...receiver }, i) => {
    const at = ['notify', i]
    const url = URL.parse(receiver.url)
    if (!url) reportIn(ctx, [...at, 'url'], 'expected a URL of http or https')
    else if (urls.has(url.href))
      reportIn(ctx, [...at, 'url'], 'found the URL of an earlier receiver, expected one entry')
    else urls.add(url.href)
    if (name !== undefined && written.findIndex((one) => one.name === name) < i)
      reportIn(ctx, [...at, 'name'], 'found the name of an earlier receiver, expected another one')
    checkSecret(receiver, at, ctx)
    const named = name ?? freeName(url?.host ?? 'receiver', names)
    names.add(named)
    return { name: named, ...receiver, ...(rules && { proxy: rules }) }
  })
}

function checkSecret(
  { secret, format }: Pick<WrittenReceiver, 'secret' | 'format'>,
  at: readonly (string | number)[],
  ctx: z.RefinementCtx,
): void {
  if (secret === undefined) return
  const place = [...at, 'secret']
  if (format !== 'json') reportIn(ctx, place, `found a secret for the format "${format}", which has no signature`)
  else if (secret.startsWith('whsec_') && !/^whsec_[A-Za-z\d+/]{16,}={0,2}$/.test(secret))
    reportIn(ctx, place, 'found "whsec_" and another text than base64, expected whsec_ and base64')
}

function freeName(base: string, taken: ReadonlySet<string>): string {
  let name = base
  for (let n = 2; taken.has(name); n++) name = `${base}#${n}`
  return name
}

/** Returns the texts of receivers that nobody may read: their URLs, which a chat posts for, and their secrets. */
export function notifySecrets({ notify = [] }: ApprovalsConfig = {}): readonly string[] {
  return notify.flatMap(({ url: text, secret }) => {
    const url = URL.parse(text)
    // An origin alone is no secret, and errors name it.
    const isBare = !url || (url.pathname === '/' && url.search === '')
    const path = url && url.pathname.length > 1 ? [`${url.origin}${url.pathname}`] : []
    return [...(isBare ? [] : [text, url.href, ...path]), ...(secret === undefined ? [] : [secret])]
  })
}

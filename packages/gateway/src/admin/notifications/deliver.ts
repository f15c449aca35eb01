import { messageOf } from '@toolgate/values'
import { toJsonText } from '@toolgate/values/json'
import type { ReceiverConfig } from '../../config/config.ts'
import { VERSION } from '../../files.ts'
import { requestBounded } from '../../util/bounded-request.ts'
import { proxyFor } from '../../util/proxy-rules.ts'
import { toJson } from './formats/json.ts'
import { toSlack } from './formats/slack.ts'
import { toTeams } from './formats/teams.ts'
import type { NoticeMessage } from './message.ts'
import { signedHeaders } from './sign.ts'

/** What became of one POST. */
export type Delivery =
  | { readonly outcome: 'sent'; readonly text: string }
  /** It may work later. `retryMs`: when the receiver asks to be asked again. */
  | { readonly outcome: 'later'; readonly text: string; readonly retryMs?: number | undefined }
  /** This message never will. `isGone`: the URL leads nowhere, so others will not either for some time. */
  | { readonly outcome: 'refused'; readonly text: string; readonly isGone: boolean }

const TIMEOUT_MS = 10_000
/** What is read of an answer, for the log. */
const MAX_ANSWER_BYTES = 2_048
const PEEK_MS = 1_000
const MAX_SHOWN_CHARS = 200

/** Sends one message, once. Redirects are not followed. Never rejects. */
export async function deliver(
  receiver: ReceiverConfig,
  message: NoticeMessage,
  { id, atMs, timeoutMs = TIMEOUT_MS }: { readonly id: string; readonly atMs: number; readonly timeoutMs?: number },
): Promise<Delivery> {
  const url = new URL(receiver.url)
  try {
    const body = toJsonText(bodyFor(receiver, message, atMs))
    const headers = {
      'content-type': 'application/json',
      'user-agent': `toolgate/${VERSION}`,
      ...(receiver.format === 'json' ? signedHeaders({ id, atMs, body }, receiver.secret) : {}),
    }
    const { status, rawHeaders, bytes } = await requestBounded(url, {
      method: 'POST',
      headers,
      body,
      timeoutMs,
      maxBytes: MAX_ANSWER_BYTES,
      peekMs: PEEK_MS,
      proxy: proxyFor(receiver.proxy, url),
    })
    return toDelivery(status, headerIn(rawHeaders, 'retry-after'), { said: bytes.toString(), atMs })
  } catch (error) {
    // The path of the URL is a secret.
    return { outcome: 'later', text: messageOf(error).replaceAll(`${url.origin}${url.pathname}`, url.origin) }
  }
}

function bodyFor({ format }: ReceiverConfig, message: NoticeMessage, atMs: number): object {
  if (format === 'json') return toJson(message, atMs)
  return format === 'slack' ? toSlack(message) : toTeams(message)
}

const LATER: ReadonlySet<number> = new Set([408, 425, 429])
const GONE: ReadonlySet<number> = new Set([404, 410])

function toDelivery(
  status: number,
  retryAfter: string | undefined,
  { said, atMs }: { readonly said: string; readonly atMs: number },
): Delivery {
  const words = said
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_SHOWN_CHARS)
  const text = `it answered ${status}${words === '' ? '' : `: ${words}`}`
  if (status >= 200 && status < 300) return { outcome: 'sent', text }
  if (status >= 300 && status < 400)
    return { outcome: 'refused', text: `it answered ${status}, a redirect, which is not followed`, isGone: true }
  if (LATER.has(status) || status >= 500) return { outcome: 'later', text, retryMs: toWait(retryAfter, atMs) }
  return { outcome: 'refused', text, isGone: GONE.has(status) }
}

/** Returns how long the receiver asks to wait: seconds, or a date (RFC 9110, 10.2.3). */
function toWait(text: string | undefined, atMs: number): number | undefined {
  if (text === undefined) return undefined
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - atMs
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

function headerIn(rawHeaders: readonly string[], name: string): string | undefined {
  const at = rawHeaders.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === name)
  return at === -1 ? undefined : rawHeaders[at + 1]
}

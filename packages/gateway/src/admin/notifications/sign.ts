import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'

/**
 * Returns the headers with which a receiver checks a message (Standard Webhooks 1.0). A retried message has the same id.
 *
 * @example
 * signedHeaders({ id: 'msg_1', atMs: Date.now(), body: '{}' }, 'whsec_…')
 */
export function signedHeaders(
  { id, atMs, body }: { readonly id: string; readonly atMs: number; readonly body: string },
  secret: string | undefined,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(atMs / 1000))
  const known = { 'webhook-id': id, 'webhook-timestamp': timestamp }
  if (secret === undefined) return known
  const key = secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : secret
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { ...known, 'webhook-signature': `v1,${signature}` }
}

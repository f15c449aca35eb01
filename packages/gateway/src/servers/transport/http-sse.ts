import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { UpstreamError } from '../../model/upstream.ts'
import { StatusError } from './http-errors.ts'

const PROBE_MS = 2_000
/** The maximum length of the first event, which is short: `event: endpoint`, and the path to post to. */
const FIRST_EVENT_CHARS = 4_096

const HTTP_SSE =
  'speaks HTTP+SSE of MCP 2024-11-05, which is not supported; put a bridge to Streamable HTTP or stdio before it, such as "command: npx, args: [mcp-remote, <url>]"'

/**
 * Returns the error of a failed handshake, or a clearer one if the server uses HTTP+SSE (MCP 2024-11-05): such a server
 * refuses a POST to the URL, and answers a GET with a stream whose first event is `endpoint`.
 */
export async function explainHandshake(
  error: UpstreamError,
  {
    url,
    headers,
    signal,
  }: { readonly url: URL; readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
): Promise<UpstreamError> {
  const isRefusal = error instanceof StatusError && error.status >= 400 && error.status < 500
  if (!isRefusal || !(await sendsEndpoint(url, headers, signal))) return error
  return new StatusError(error.status, HTTP_SSE)
}

async function sendsEndpoint(
  url: URL,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const stopped = AbortSignal.any([signal, AbortSignal.timeout(PROBE_MS)])
  try {
    const options = { headers: { ...headers, accept: 'text/event-stream' }, signal: stopped, agent: false as const }
    // An import of node:http would also load `fetch`: 30 ms and 13 MB.
    const { get } = process.getBuiltinModule(url.protocol === 'https:' ? 'node:https' : 'node:http')
    const request = get(url, options)
    const [response] = (await once(request, 'response', { signal: stopped })) as [IncomingMessage]
    try {
      return response.statusCode === 200 && (await firstEventOf(response)) === 'endpoint'
    } finally {
      response.destroy()
    }
  } catch {
    return false
  }
}

async function firstEventOf(stream: IncomingMessage): Promise<string | undefined> {
  let text = ''
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk
    if (/\r?\n\r?\n/.test(text) || text.length > FIRST_EVENT_CHARS) break
  }
  return /^event: ?(\S+)\r?$/m.exec(text)?.[1]
}

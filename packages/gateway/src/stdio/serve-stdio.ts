import type { Readable } from 'node:stream'
import { endsWithin } from '@toolgate/values'
import { StdioBridge } from './bridge.ts'
import type { BridgeHints, BridgeOutcome } from './reports.ts'

export interface ServeStdioOptions {
  /** The stream from the client: MCP, one message per line. */
  readonly input: Readable
  /** The stream to the client. Only messages are written to it. */
  readonly output: NodeJS.WritableStream
  /** The gateway's endpoint, such as `http://127.0.0.1:8787/mcp` or `…/mcp/<app>`. */
  readonly url: URL
  readonly key?: string | undefined
  readonly hints: BridgeHints
  /** Writes one line for a person. */
  readonly log: (text: string) => void
  /** Stops serving, like the end of the input. */
  readonly signal?: AbortSignal | undefined
}

/** How long running requests may take after the client has closed its side. */
const LAST_ANSWERS_MS = 1_000

/**
 * Serves one client on stdio, in either era of MCP, by forwarding to a gateway over HTTP. Ends with its client. Returns
 * the best outcome.
 *
 * @throws {UpstreamError} `upstream_too_large` for a line of the client beyond 16 MiB
 */
export async function serveStdio(options: ServeStdioOptions): Promise<BridgeOutcome> {
  const { input, output, url, key, hints, log, signal } = options
  const write = (text: string) => void output.write(`${text}\n`)
  const bridge = new StdioBridge({ url, key, write, log, hints })
  const stop = () => input.destroy()
  signal?.addEventListener('abort', stop)
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) bridge.receive(chunk)
    await endsWithin(bridge.idle(), LAST_ANSWERS_MS)
  } catch (error) {
    if (!signal?.aborted) throw error
  } finally {
    signal?.removeEventListener('abort', stop)
    await bridge.close()
  }
  return bridge.outcome
}

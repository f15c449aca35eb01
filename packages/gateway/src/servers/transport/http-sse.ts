import type { Dispatcher } from 'undici'
import type { UpstreamError } from '../../model/upstream.ts'
import type { AnswerHandler } from './http-connections.ts'
import type { HttpEndpoint } from './http-endpoint.ts'
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
  endpoint: HttpEndpoint,
  signal: AbortSignal,
): Promise<UpstreamError> {
  const isRefusal = error instanceof StatusError && error.status >= 400 && error.status < 500
  if (!isRefusal || signal.aborted) return error
  const beginning = new StreamBeginning()
  const timer = setTimeout(beginning.stop, PROBE_MS)
  signal.addEventListener('abort', beginning.stop)
  endpoint.look(beginning)
  const text = await beginning.text
  clearTimeout(timer)
  signal.removeEventListener('abort', beginning.stop)
  return /^event: ?endpoint\r?$/m.test(text) ? new StatusError(error.status, HTTP_SSE) : error
}

/** Reads the first event of an answer, and ends it. */
class StreamBeginning implements AnswerHandler {
  /** The first event, or an empty text if the answer is none or fails. */
  readonly text: Promise<string>
  readonly #resolve: (text: string) => void
  #read = ''
  #hasStopped = false
  #controller: Dispatcher.DispatchController | undefined

  constructor() {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.text = promise
    this.#resolve = resolve
  }

  readonly stop = (): void => {
    this.#hasStopped = true
    this.#resolve(this.#read)
    this.#controller?.abort(new Error('was read'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#hasStopped) this.stop()
  }

  onResponseStart(_: unknown, status: number): void {
    if (status >= 300) this.stop()
  }

  onResponseData(_: unknown, chunk: Buffer): void {
    this.#read += chunk.toString('latin1')
    if (/\r?\n\r?\n/.test(this.#read) || this.#read.length > FIRST_EVENT_CHARS) this.stop()
  }

  onResponseEnd(): void {
    this.#resolve(this.#read)
  }

  onResponseError(): void {
    this.#resolve(this.#read)
  }
}

import { createLineSplitter } from './lines.ts'
import { UpstreamError } from './upstream.ts'

/** Reads `text/event-stream` (HTML Living Standard, 9.2.6; line endings LF and CRLF). */
export interface EventStream {
  push(chunk: Buffer): void
  /** Id of the latest event that had one: where to go on after a break. */
  readonly lastEventId: string | undefined
  /** How long the server asks to wait before that. */
  readonly retryMs: number | undefined
}

/**
 * Gives a reader that calls `onData` for each event of the type `message`.
 *
 * @throws {UpstreamError} `upstream_too_large`, from `push`, for an event of more than `maxBytes`
 */
export function createEventStream(maxBytes: number, onData: (data: string) => void): EventStream {
  let data: string[] = []
  let dataLength = 0
  let type = 'message'
  let lastEventId: string | undefined
  let retryMs: number | undefined

  const fields = new Map<string, (value: string) => void>([
    ['data', addData],
    ['event', (value) => (type = value)],
    ['id', (value) => (lastEventId = value.includes('\0') ? lastEventId : value)],
    ['retry', (value) => (retryMs = /^\d{1,9}$/.test(value) ? Number(value) : retryMs)],
  ])
  return {
    push: createLineSplitter(maxBytes, onLine),
    get lastEventId() {
      return lastEventId
    },
    get retryMs() {
      return retryMs
    },
  }

  function onLine(line: string): void {
    if (line === '') return dispatch()
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    fields.get(name)?.(value)
  }

  function addData(value: string): void {
    // Its line break counts too: a stream of empty lines would never be too large.
    dataLength += value.length + 1
    if (dataLength > maxBytes) throw new UpstreamError('upstream_too_large', 'answered an event that is too large')
    data.push(value)
  }

  function dispatch(): void {
    const text = data.join('\n')
    const wanted = type === 'message' || type === ''
    data = []
    dataLength = 0
    type = 'message'
    if (wanted && text !== '') onData(text)
  }
}

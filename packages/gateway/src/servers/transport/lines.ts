import { TextDecoder } from 'node:util'
import { LIMITS } from './limits.ts'
import { Pieces } from './pieces.ts'
import { UpstreamError } from '../../model/upstream.ts'

const NEWLINE = 0x0a
const RETURN = 0x0d
const BYTE_ORDER_MARK = '\uFEFF'
const LAST_LINES = Buffer.from('\n\n')

/** Shorter pieces are joined first: as a string they would take far more memory than their characters. */
const SHORT_BYTES = 64
const JOINED_BYTES = 4096

/** Receives a line that is too long to keep, in pieces. */
export interface LongLine {
  /** Receives a piece. `bytes`: the length of the line up to the end of the piece. */
  push(text: string, bytes: number): void
  end(bytes: number): void
}

/**
 * Returns a function that receives bytes and calls `onLine` for each complete line, without its ending, and with its
 * length in bytes. Characters that are split between chunks arrive whole. If a line is not UTF-8, its text is only for
 * messages.
 *
 * A line of more than `maxBytes` goes to the result of `beginLong`, from its beginning.
 *
 * @throws {UpstreamError} `upstream_too_large`, from the function, for such a line without `beginLong`
 */
export function createLineSplitter(
  maxBytes: number,
  onLine: (line: string, bytes: number, isUtf8: boolean) => void,
  beginLong: () => LongLine = refuseLong,
): (chunk: Buffer) => void {
  // Decoded chunk by chunk, as decoding a long line at once would block the event loop.
  let decoder = createDecoder()
  let isUtf8 = true
  const short = new Pieces()
  let line = ''
  let lineBytes = 0
  let long: LongLine | undefined
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, end), true)
      start = end + 1
      const ended = line + decode()
      const [bytes, isText] = [lineBytes, isUtf8]
      line = ''
      lineBytes = 0
      isUtf8 = true
      if (long) endLong(long, bytes)
      else onLine(ended.endsWith('\r') ? ended.slice(0, -1) : ended, bytes, isText)
    }
    if (start < chunk.length) keep(chunk.subarray(start), false)
  }

  function keep(bytes: Buffer, isEnd: boolean): void {
    lineBytes += bytes.length
    const waits = !isEnd && bytes.length < SHORT_BYTES
    if (waits || short.bytes > 0) short.push(bytes)
    if (waits && short.bytes < JOINED_BYTES && lineBytes <= maxBytes) return
    line += decode(short.bytes > 0 ? short.take() : bytes)
    if (lineBytes <= maxBytes) return
    long ??= beginLong()
    const piece = line
    line = ''
    long.push(piece, lineBytes)
  }

  /** Decodes bytes. Without bytes, it ends the line. */
  function decode(bytes?: Buffer): string {
    try {
      if (isUtf8) return decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      isUtf8 = false
      decoder = createDecoder()
    }
    return bytes?.toString() ?? ''
  }

  function endLong(ended: LongLine, bytes: number): void {
    long = undefined
    ended.end(bytes)
  }
}

function createDecoder(): TextDecoder {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
}

function refuseLong(): never {
  throw messageTooLarge()
}

/** Returns the error for a message beyond `LIMITS.messageBytes`. */
export function messageTooLarge(): UpstreamError {
  const limit = LIMITS.messageBytes / 1024 / 1024
  return new UpstreamError('upstream_too_large', `answered more than ${limit} MiB in one message`)
}

/** Returns the error for bytes that are not UTF-8 (RFC 8259 §8.1). */
export function notUtf8(): UpstreamError {
  return new UpstreamError('upstream_protocol', 'answered bytes that are not UTF-8')
}

/** The delay before an event stream is first reopened, if the server states none. */
const FIRST_REOPEN_MS = 1_000
const MIN_REOPEN_MS = 100
const MAX_REOPEN_MS = 30_000

/** Returns the delay before an event stream is reopened, within bounds. */
export function reopenDelayMs(ms: number = FIRST_REOPEN_MS): number {
  return Math.min(Math.max(ms, MIN_REOPEN_MS), MAX_REOPEN_MS)
}

/** Reads `text/event-stream` (HTML Living Standard, 9.2.6). */
export interface EventStream {
  push(chunk: Buffer): void
  /** Ends the stream. Some servers leave out the empty line after their last event. Never throws. */
  end(): void
  /** The latest event id, to resume after a break. */
  readonly lastEventId: string | undefined
  /** The delay before resuming, if the server states one. */
  readonly retryMs: number | undefined
}

/**
 * Returns a reader that calls `onData` with the data of each `message` event.
 *
 * @throws {UpstreamError} `upstream_too_large`, from `push`, for an event of more than `maxBytes`; `upstream_protocol`
 * for bytes that are not UTF-8
 */
export function createEventStream(maxBytes: number, onData: (data: string) => void): EventStream {
  let data: string[] = []
  let dataLength = 0
  let type = 'message'
  let isFirst = true
  let lastEventId: string | undefined
  let retryMs: number | undefined

  const fields = new Map<string, (value: string) => void>([
    ['data', addData],
    ['event', (value) => (type = value)],
    ['id', (value) => (lastEventId = value.includes('\0') ? lastEventId : value)],
    ['retry', (value) => (retryMs = /^\d{1,9}$/.test(value) ? Number(value) : retryMs)],
  ])
  const push = toLineFeeds(createLineSplitter(maxBytes, onLine))
  return {
    push,
    end() {
      try {
        push(LAST_LINES)
      } catch {
        // The last event was cut off.
      }
    },
    get lastEventId() {
      return lastEventId
    },
    get retryMs() {
      return retryMs
    },
  }

  function onLine(given: string, _bytes: number, isUtf8: boolean): void {
    if (!isUtf8) throw notUtf8()
    const line = isFirst && given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given
    isFirst = false
    if (line === '') return dispatch()
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    fields.get(name)?.(value)
  }

  function addData(value: string): void {
    // The line break counts too, or a stream of empty lines would never be too large.
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

/** Passes bytes on with LF in place of each CR and CRLF, also where a chunk ends between the two. */
function toLineFeeds(push: (chunk: Buffer) => void): (chunk: Buffer) => void {
  let isAfterReturn = false
  return (given) => {
    if (given.length === 0) return
    const chunk = isAfterReturn && given[0] === NEWLINE ? given.subarray(1) : given
    isAfterReturn = given.at(-1) === RETURN
    push(chunk.includes(RETURN) ? withoutReturns(chunk) : chunk)
  }
}

function withoutReturns(chunk: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(chunk.length)
  let length = 0
  for (let i = 0; i < chunk.length; i++) {
    const byte = chunk[i] as number
    if (byte === RETURN && chunk[i + 1] === NEWLINE) continue
    bytes[length++] = byte === RETURN ? NEWLINE : byte
  }
  return bytes.subarray(0, length)
}

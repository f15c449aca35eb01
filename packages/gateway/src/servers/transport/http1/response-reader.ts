/** The headers of an answer that calls need, by their names in lower case. */
export interface AnswerHeaders {
  readonly 'content-type'?: string | undefined
  readonly 'mcp-session-id'?: string | undefined
  readonly location?: string | undefined
}

/** Receives one answer. */
export interface AnswerSink {
  onHead(status: number, headers: AnswerHeaders): void
  onBody(bytes: Buffer): void
  /** `idleMs` is how long the connection may wait for its next request; 0 if it must be closed. */
  onEnd(idleMs: number): void
}

/** An answer that is not HTTP/1.1, or that two readers could take for different ones. */
export class BadAnswer extends Error {
  override readonly name = 'BadAnswer'
}

/** Node's servers and undici have the same bound. */
const MAX_HEAD_BYTES = 16 * 1024
/** A chunk's size with its extensions. */
const MAX_SIZE_LINE_BYTES = 1024
/** Answers before the answer, such as 103. */
const MAX_INTERIM = 16
/** How long a connection is kept if its server names no time. Most servers keep it for 5 s. */
const IDLE_MS = 4_000
/** A server closes the connection at the time that it names, so it is left unused a moment earlier. */
const IDLE_MARGIN_MS = 2_000
const MAX_IDLE_MS = 600_000

type Part = 'head' | 'sized' | 'size' | 'chunk' | 'chunkEnd' | 'trailer' | 'untilClose' | 'ended'

/**
 * Reads one answer of HTTP/1.1 (RFC 9112), in whatever pieces it arrives.
 *
 * It is strict, since an answer whose end is unclear would be mixed up with the next one on its connection: each line ends
 * with CRLF, a body has one length, `chunked` is the only coding, and nothing follows the answer.
 */
export class ResponseReader {
  readonly #sink: AnswerSink
  #part: Part = 'head'
  /** The beginning of a line or of a head whose end has not arrived. */
  #held: Buffer | undefined
  /** Bytes of the body or the chunk that have not arrived. */
  #left = 0
  #interim = 0
  #trailerBytes = 0
  #idleMs = 0

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** Whether the answer has ended. */
  get hasEnded(): boolean {
    return this.#part === 'ended'
  }

  /** @throws {BadAnswer} */
  push(arrived: Buffer): void {
    const bytes = this.#held ? Buffer.concat([this.#held, arrived]) : arrived
    this.#held = undefined
    let at = 0
    while (at < bytes.length) {
      const next = this.#read(bytes, at)
      if (next === undefined) {
        this.#held = bytes.subarray(at)
        return
      }
      at = next
    }
  }

  /** The server has closed the connection. Returns whether that ends the answer. */
  close(): boolean {
    if (this.#part !== 'untilClose') return false
    this.#end(0)
    return true
  }

  /** Returns where the next part begins; `undefined` if more bytes are needed. */
  #read(bytes: Buffer, at: number): number | undefined {
    switch (this.#part) {
      case 'head':
        return this.#readHead(bytes, at)
      case 'sized':
      case 'chunk':
        return this.#readBody(bytes, at)
      case 'untilClose':
        this.#sink.onBody(bytes.subarray(at))
        return bytes.length
      case 'size':
        return this.#readSize(bytes, at)
      case 'chunkEnd':
        return this.#readChunkEnd(bytes, at)
      case 'trailer':
        return this.#readTrailer(bytes, at)
      case 'ended':
        throw new BadAnswer('sent more than its answer')
    }
  }

  #readHead(bytes: Buffer, at: number): number | undefined {
    const end = bytes.indexOf('\r\n\r\n', at, 'latin1')
    if ((end === -1 ? bytes.length : end) - at > MAX_HEAD_BYTES) throw new BadAnswer('sent too many headers')
    if (end === -1) return undefined
    const { status, headers, framing } = parseHead(bytes.toString('latin1', at, end))
    if (status < 200) {
      if (status === 101 || ++this.#interim > MAX_INTERIM) throw new BadAnswer(`answered HTTP ${status}`)
      return end + 4
    }
    this.#idleMs = framing.idleMs
    this.#sink.onHead(status, headers)
    const { length } = framing
    if (length === 0) this.#end(framing.idleMs)
    // It has no body. A server that names one may send it nevertheless, in the way of the next answer.
    else if (status === 204 || status === 304) this.#end(0)
    else if (length === 'chunked') this.#part = 'size'
    else if (length === undefined) this.#part = 'untilClose'
    else {
      this.#part = 'sized'
      this.#left = length
    }
    return end + 4
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#left)
    this.#left -= end - at
    const isWhole = this.#left === 0
    this.#sink.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end))
    if (isWhole && this.#part === 'chunk') this.#part = 'chunkEnd'
    else if (isWhole) this.#end(this.#idleMs)
    return end
  }

  #readSize(bytes: Buffer, at: number): number | undefined {
    const end = lineEnd(bytes, at, MAX_SIZE_LINE_BYTES)
    if (end === undefined) return undefined
    const [, size] = SIZE_LINE.exec(bytes.toString('latin1', at, end)) ?? []
    if (size === undefined) throw new BadAnswer('sent a chunk without a size')
    this.#left = Number.parseInt(size, 16)
    this.#part = this.#left === 0 ? 'trailer' : 'chunk'
    return end + 2
  }

  #readChunkEnd(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < 2 && bytes[at] === CR) return undefined
    if (bytes[at] !== CR || bytes[at + 1] !== LF) throw new BadAnswer('sent a chunk of another size than it named')
    this.#part = 'size'
    return at + 2
  }

  #readTrailer(bytes: Buffer, at: number): number | undefined {
    const end = lineEnd(bytes, at, MAX_HEAD_BYTES - this.#trailerBytes)
    if (end === undefined) return undefined
    this.#trailerBytes += end - at
    if (end === at) this.#end(this.#idleMs)
    else if (!HEADER_LINE.test(bytes.toString('latin1', at, end))) throw new BadAnswer('sent an invalid trailer')
    return end + 2
  }

  #end(idleMs: number): void {
    this.#part = 'ended'
    this.#sink.onEnd(idleMs)
  }
}

const CR = 0x0d
const LF = 0x0a

/** Returns the position of a line's CRLF, if it has arrived. @throws {BadAnswer} for a longer line */
function lineEnd(bytes: Buffer, at: number, max: number): number | undefined {
  const end = bytes.indexOf('\r\n', at, 'latin1')
  if ((end === -1 ? bytes.length : end) - at > max) throw new BadAnswer('sent a line that is too long')
  return end === -1 ? undefined : end
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7E\x80-\xFF]*)?$/
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~\w]+):[\t ]*([\t\x20-\x7E\x80-\xFF]*)$/
/** Only these are no part of a value: "chunked" and a no-break space are another coding. */
const LAST_SPACE = /[\t ]+$/
/** RFC 9112 §7.1. No chunk has 4 GiB. */
const SIZE_LINE = /^([\dA-Fa-f]{1,8})(?:[\t ]*;[\t\x20-\x7E\x80-\xFF]*)?$/

interface Head {
  readonly status: number
  readonly headers: AnswerHeaders
  readonly framing: Framing
}

interface Framing {
  /** Of the body; `undefined` if the end of the connection ends it. */
  readonly length: number | 'chunked' | undefined
  readonly idleMs: number
}

/** The headers that are read. Any other is only checked. */
const READ: ReadonlySet<string> = new Set([
  'content-type',
  'mcp-session-id',
  'location',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
])
/** Two of them would leave the end of the body unclear. */
const ONCE: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding'])

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n')
  const [, minor, status] = STATUS_LINE.exec(first) ?? []
  if (status === undefined) throw new BadAnswer('answered something that is not HTTP/1.1')
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, written, value = ''] = HEADER_LINE.exec(line) ?? []
    if (written === undefined) throw new BadAnswer('sent an invalid header')
    const name = written.toLowerCase()
    if (!READ.has(name)) continue
    if (headers[name] === undefined) headers[name] = value.replace(LAST_SPACE, '')
    else if (ONCE.has(name)) throw new BadAnswer(`sent two ${name} headers`)
    // RFC 9110 §5.3: the values of a list.
    else if (name === 'connection') headers[name] += `, ${value}`
  }
  return { status: Number(status), headers, framing: framingOf(headers, minor === '1') }
}

function framingOf(headers: Readonly<Record<string, string | undefined>>, isLatest: boolean): Framing {
  const { 'content-length': length, 'transfer-encoding': coding, connection = '', 'keep-alive': keepAlive } = headers
  const closes = !isLatest || /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i.test(connection)
  const idleMs = closes ? 0 : idleTime(keepAlive)
  if (coding !== undefined) {
    if (!isLatest || length !== undefined || coding.toLowerCase() !== 'chunked')
      throw new BadAnswer('sent a body whose end is unclear')
    return { length: 'chunked', idleMs }
  }
  if (length === undefined) return { length, idleMs: 0 }
  if (!/^\d{1,15}$/.test(length)) throw new BadAnswer('sent a content-length that is not a number')
  return { length: Number(length), idleMs }
}

function idleTime(keepAlive: string | undefined): number {
  const [, seconds] = /(?:^|[\t ,])timeout=(\d{1,9})/i.exec(keepAlive ?? '') ?? []
  if (seconds === undefined) return IDLE_MS
  return Math.min(Math.max(Number(seconds) * 1000 - IDLE_MARGIN_MS, 0), MAX_IDLE_MS)
}

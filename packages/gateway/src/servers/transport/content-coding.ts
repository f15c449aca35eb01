import type { Transform } from 'node:stream'
import type { ZlibOptions } from 'node:zlib'
import { clip } from './json-rpc.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** Receives a decoded body. The bounds of a body hold for its decoded bytes. */
interface DecodedBody {
  readonly onData: (bytes: Buffer) => void
  /** Called once, with an error for bytes that are not in the coding. */
  readonly onEnd: (error?: Error) => void
  /** Called when more bytes may follow, after `push` returned `false`. */
  readonly onDrain: () => void
}

/** A body in a content coding, which is decoded as it arrives. */
export interface ContentDecoder {
  /** Returns `false` while more bytes would have to be kept. */
  push(bytes: Buffer): boolean
  end(): void
  /** Stops decoding. Nothing is called any more. */
  stop(): void
}

/**
 * Returns a decoder for the coding that an answer names (RFC 9110 §8.4), or `undefined` if there is none. The gateway
 * asks for no coding, but proxies and some servers use one anyway.
 *
 * @throws {UpstreamError} `upstream_protocol` for an unknown coding, and for more than one
 */
export function createContentDecoder(coding: string, body: DecodedBody): ContentDecoder | undefined {
  const names = coding.toLowerCase().split(',')
  const [name, ...others] = names.map((one) => one.trim()).filter((one) => one !== '' && one !== 'identity')
  if (name === undefined) return undefined
  const open = others.length === 0 ? CODINGS.get(name) : undefined
  if (!open)
    throw new UpstreamError(
      'upstream_protocol',
      `answered in the content coding "${clip(coding, 50)}", which is unknown`,
    )
  return new StreamDecoder(open, body)
}

class StreamDecoder implements ContentDecoder {
  readonly #open: OpenDecoder
  readonly #body: DecodedBody
  #stream: Transform | undefined
  #hasStopped = false

  constructor(open: OpenDecoder, body: DecodedBody) {
    this.#open = open
    this.#body = body
  }

  push(bytes: Buffer): boolean {
    this.#stream ??= this.#start(bytes)
    return this.#stream.write(bytes)
  }

  end(): void {
    if (this.#stream) this.#stream.end()
    else this.#body.onEnd()
  }

  stop(): void {
    this.#hasStopped = true
    this.#stream?.destroy()
  }

  #start(first: Buffer): Transform {
    const { onData, onEnd, onDrain } = this.#body
    const unlessStopped = (step: () => void) => {
      if (!this.#hasStopped) step()
    }
    return this.#open(first)
      .on('data', (bytes: Buffer) => unlessStopped(() => onData(bytes)))
      .on('end', () => unlessStopped(onEnd))
      .on('drain', () => unlessStopped(onDrain))
      .on('error', (error) => unlessStopped(() => onEnd(error)))
  }
}

type OpenDecoder = (first: Buffer) => Transform

const zlib = () => process.getBuiltinModule('node:zlib')

/** A stream that ends without its checksum is read as far as it goes, as browsers do. */
const gzip: OpenDecoder = () => zlib().createGunzip(lenient())
const CODINGS: ReadonlyMap<string, OpenDecoder> = new Map<string, OpenDecoder>([
  ['gzip', gzip],
  ['x-gzip', gzip],
  // Many servers leave out the head of zlib, which RFC 9110 §8.4.1.2 requires.
  [
    'deflate',
    ([first = 0]) => (hasZlibHead(first) ? zlib().createInflate(lenient()) : zlib().createInflateRaw(lenient())),
  ],
  ['br', () => zlib().createBrotliDecompress()],
  ['zstd', () => zlib().createZstdDecompress()],
])

function lenient(): ZlibOptions {
  return { finishFlush: zlib().constants.Z_SYNC_FLUSH }
}

/** RFC 1950: the lower half of the first byte is the method, 8. */
function hasZlibHead(first: number): boolean {
  return (first & 0x0f) === 8
}

import { UpstreamError } from './upstream.ts'

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d

/**
 * Gives a function that takes bytes and calls `onLine` for each line that has ended, without its ending.
 *
 * Bytes are kept until their line ends, so characters that were cut in two arrive whole.
 *
 * @throws {UpstreamError} `upstream_too_large`, from the function, for a line of more than `maxBytes`
 */
export function createLineSplitter(maxBytes: number, onLine: (line: string) => void): (chunk: Buffer) => void {
  let kept: Buffer[] = []
  let keptBytes = 0
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, end))
      start = end + 1
      const line = kept.length === 1 ? (kept[0] as Buffer) : Buffer.concat(kept, keptBytes)
      kept = []
      keptBytes = 0
      onLine(line.toString('utf8', 0, line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length))
    }
    if (start < chunk.length) keep(chunk.subarray(start))
  }

  function keep(bytes: Buffer): void {
    keptBytes += bytes.length
    if (keptBytes > maxBytes) {
      throw new UpstreamError('upstream_too_large', `answered more than ${maxBytes / 1024 / 1024} MiB in one message`)
    }
    kept.push(bytes)
  }
}

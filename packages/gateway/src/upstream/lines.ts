import { StringDecoder } from 'node:string_decoder'
import { UpstreamError } from './upstream.ts'

const NEWLINE = 0x0a

/**
 * Returns a function that takes bytes and calls `onLine` for each line that has ended, without its ending, and with its
 * length in bytes.
 *
 * Characters that were cut in two arrive whole.
 *
 * @throws {UpstreamError} `upstream_too_large`, from the function, for a line of more than `maxBytes`
 */
export function createLineSplitter(
  maxBytes: number,
  onLine: (line: string, bytes: number) => void,
): (chunk: Buffer) => void {
  // Decoded as it comes: doing so for a long line at its end would hold up everything else.
  const decoder = new StringDecoder('utf8')
  let line = ''
  let lineBytes = 0
  return (chunk) => {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      keep(chunk.subarray(start, end))
      start = end + 1
      const ended = line + decoder.end()
      const bytes = lineBytes
      line = ''
      lineBytes = 0
      onLine(ended.endsWith('\r') ? ended.slice(0, -1) : ended, bytes)
    }
    if (start < chunk.length) keep(chunk.subarray(start))
  }

  function keep(bytes: Buffer): void {
    lineBytes += bytes.length
    if (lineBytes > maxBytes) {
      throw new UpstreamError('upstream_too_large', `answered more than ${maxBytes / 1024 / 1024} MiB in one message`)
    }
    line += decoder.write(bytes)
  }
}

/**
 * Returns a body without its content coding (RFC 9110 §8.4), which some servers use unasked. A body in a coding that is
 * not known stays as it is.
 *
 * @throws for a body that is not in the coding, and for one that becomes longer than `maxBytes`
 */
export function decodeBody(bytes: Buffer, coding: string | undefined, maxBytes: number): Buffer {
  if (coding === undefined || bytes.length === 0) return bytes
  const zlib = process.getBuiltinModule('node:zlib')
  const bounds = { maxOutputLength: maxBytes }
  switch (coding.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return zlib.gunzipSync(bytes, bounds)
    case 'deflate':
      return zlib.inflateSync(bytes, bounds)
    case 'br':
      return zlib.brotliDecompressSync(bytes, bounds)
    default:
      return bytes
  }
}

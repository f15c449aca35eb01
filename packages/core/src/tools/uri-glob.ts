import { type Glob, matchesGlob } from './glob.ts'
import { comparableUri } from './uri.ts'

/**
 * Stands for a star, because no URI and no pattern contains it. A percent-encoded star is a plain character, so all parts
 * are decoded together.
 */
const STAR = '\0'

/** Returns a URI pattern without unnecessary percent-encoding. */
export function toPlainGlob(glob: Glob): Glob {
  const text = glob.join(STAR)
  const plain = comparableUri(text)
  return plain === text ? glob : plain.split(STAR)
}

/** Returns whether a pattern matches a URI or template, either as both are written or without unnecessary percent-encoding. */
export function matchesUri(glob: Glob, plain: Glob, uri: string): boolean {
  if (matchesGlob(glob, uri)) return true
  const text = comparableUri(uri)
  return (plain !== glob || text !== uri) && matchesGlob(plain, text)
}

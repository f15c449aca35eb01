import { type Glob, matchesGlob } from './glob.ts'
import { comparableUri } from './uri.ts'

/** No URI and no pattern of one holds it. A coded star that is decoded is a character, so the parts are read together. */
const STAR = '\0'

/** Returns the pattern of URIs that a pattern is without needless coding. */
export function toPlainGlob(glob: Glob): Glob {
  const text = glob.join(STAR)
  const plain = comparableUri(text)
  return plain === text ? glob : plain.split(STAR)
}

/** Whether a pattern matches a URI or template: as both are written, or without needless coding. */
export function matchesUri(glob: Glob, plain: Glob, uri: string): boolean {
  if (matchesGlob(glob, uri)) return true
  const text = comparableUri(uri)
  return (plain !== glob || text !== uri) && matchesGlob(plain, text)
}

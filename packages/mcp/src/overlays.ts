import type { ToolOverlay } from '@toolgate/core/tools'
import { matchesGlob, matchesUri, parseGlob, toPlainGlob } from '@toolgate/core/toolset'

/** The operator's overlays of a server's items, by name, URI or glob. */
export type OverlayEntries<Overlay> = Iterable<readonly [pattern: string, overlay: Overlay]>

/** The operator's overlays of one kind of item. All that match an item apply; later ones take precedence. */
export class Overlays<Overlay extends ToolOverlay> {
  readonly #entries: readonly (readonly [pattern: string, matches: (key: string) => boolean, overlay: Overlay])[]

  /**
   * `of`: the kind of text that the patterns match. All spellings of a URI that differ only in needless
   * percent-encoding match alike.
   */
  constructor(entries: OverlayEntries<Overlay> = [], of: 'names' | 'uris' = 'names') {
    this.#entries = [...entries].map(([pattern, overlay]) => {
      const glob = parseGlob(pattern)
      const plain = toPlainGlob(glob)
      return [pattern, (key) => (of === 'uris' ? matchesUri(glob, plain, key) : matchesGlob(glob, key)), overlay]
    })
  }

  /** Returns the overlays of an item, by its name or URI. */
  of(key: unknown): readonly Overlay[] {
    if (typeof key !== 'string') return []
    return this.#entries.flatMap(([, matches, overlay]) => (matches(key) ? [overlay] : []))
  }

  /** Returns the patterns that match none of these keys. */
  unmatchedBy(keys: readonly string[]): readonly string[] {
    return this.#entries.flatMap(([pattern, matches]) => (keys.some(matches) ? [] : [pattern]))
  }
}

/** Returns the fields that overlays add to a definition of any kind. */
export function addedBy(
  overlays: readonly ToolOverlay[],
): Required<Pick<ToolOverlay, 'tags' | 'requiredScopes' | 'category' | 'labels' | 'trusted'>> {
  return {
    labels: overlays.flatMap(({ labels = [] }) => labels),
    trusted: overlays.findLast(({ trusted }) => trusted !== undefined)?.trusted,
    tags: overlays.flatMap(({ tags = [] }) => tags),
    requiredScopes: overlays.flatMap(({ requiredScopes = [] }) => requiredScopes),
    category: overlays.findLast(({ category }) => category !== undefined)?.category,
  }
}

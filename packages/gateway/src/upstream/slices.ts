/** Tools that are parsed, compared or announced in one turn of the event loop. */
const SLICE_TOOLS = 200
const SLICE_CHARS = 512 * 1024

/** Splits tools into slices, each short enough for one turn of the event loop. */
export function* slicesOf<Item>(items: readonly Item[], charsOf: (item: Item) => number): Generator<readonly Item[]> {
  let slice: Item[] = []
  let chars = 0
  for (const item of items) {
    slice.push(item)
    chars += charsOf(item)
    if (slice.length < SLICE_TOOLS && chars < SLICE_CHARS) continue
    yield slice
    slice = []
    chars = 0
  }
  if (slice.length > 0) yield slice
}

/**
 * BM25 as in Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), which gives
 * 1.2 to 2 for `k1` and 0.5 to 0.8 for `b`; fields weighted before the frequency saturates, as in Robertson,
 * Zaragoza & Taylor, "Simple BM25 Extension to Multiple Weighted Fields" (CIKM 2004).
 *
 * The idf has Lucene's 1 inside the logarithm, so that a word which most tools have never counts against one.
 * The constant factor k1 + 1 is left out: it changes no order.
 */
export const K1 = 1.2
export const B = 0.75

/** What a word counts that `withTerm` of `count` tools have. */
export function inverseFrequency(count: number, withTerm: number): number {
  return Math.log(1 + (count - withTerm + 0.5) / (withTerm + 0.5))
}

/** What `frequency` repetitions count in a text of `length` words, where the average has `averageLength`. */
export function saturation(frequency: number, length: number, averageLength: number): number {
  return frequency / (frequency + K1 * (1 - B + (B * length) / averageLength))
}

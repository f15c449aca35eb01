import { type SearchField, FIELD_WEIGHTS, fieldTerms } from '../../core/src/search/fields.ts'
import { B, K1, parseQuery, PREFIX_WEIGHT } from '../../core/src/search/rank.ts'
import { compareToolIds } from '@toolgate/core/tools'
import type { ItemKind } from '@toolgate/core/toolset'
import type { Tool } from '@toolgate/core'

/** An item as words, with the weight of each. */
export interface NaiveText {
  readonly id: string
  readonly kind: ItemKind
  readonly weights: ReadonlyMap<string, number>
  readonly length: number
}

export function naiveText(tool: Tool): NaiveText {
  const weights = new Map<string, number>()
  let length = 0
  for (const [field, terms] of Object.entries(fieldTerms(tool)) as [SearchField, readonly string[]][]) {
    for (const term of terms) {
      weights.set(term, (weights.get(term) ?? 0) + FIELD_WEIGHTS[field])
      length += FIELD_WEIGHTS[field]
    }
  }
  return { id: tool.id, kind: tool.kind, weights, length }
}

/**
 * Searches with the literal formula, over texts only: it has no index, and no hidden tools to skip.
 *
 * It is the reference of the search, and the baseline of its benchmark.
 */
export function naiveSearch(
  texts: readonly NaiveText[],
  query: string,
  limit: number,
): readonly { readonly id: string; readonly score: number }[] {
  const { terms, prefix } = parseQuery(query)
  const averageLength = texts.reduce((sum, { length }) => sum + length, 0) / texts.length
  const scores = texts.map(() => 0)
  const add = (frequencyIn: (text: NaiveText) => number, weight: number) => {
    const frequencies = texts.map(frequencyIn)
    const having = frequencies.filter((frequency) => frequency > 0).length
    const rarity = weight * Math.log(1 + (texts.length - having + 0.5) / (having + 0.5))
    for (const [i, frequency] of frequencies.entries()) {
      const { length } = texts[i] as NaiveText
      const saturated = frequency / (frequency + K1 * (1 - B + (B * length) / averageLength))
      if (frequency > 0) scores[i] = (scores[i] as number) + rarity * saturated
    }
  }
  for (const term of terms) add(({ weights }) => weights.get(term) ?? 0, 1)
  if (prefix !== undefined) add(({ weights }) => weightOfBeginning(weights, prefix, terms), PREFIX_WEIGHT)
  return texts
    .map(({ id, kind }, i) => ({ id, isTool: kind === 'tool', score: scores[i] as number }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || Number(b.isTool) - Number(a.isTool) || compareToolIds(a.id, b.id))
    .slice(0, limit)
}

function weightOfBeginning(weights: ReadonlyMap<string, number>, prefix: string, except: readonly string[]): number {
  return [...weights]
    .filter(([term]) => term.startsWith(prefix) && !except.includes(term))
    .reduce((sum, [, weight]) => sum + weight, 0)
}

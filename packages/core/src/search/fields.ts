import type { JsonSchema, Tool } from '../tools/tool.ts'
import { joinWords, stem, tokenize } from './tokenize.ts'

/**
 * The one table of fields: what a word counts for where it stands.
 *
 * Whole numbers, so that adding them up is exact in any order. Tuned once on `relevance.test.json`, where
 * halving or doubling any one of them changes little.
 */
export const FIELD_WEIGHTS = {
  /** The words of the name, and the name as one word. */
  name: 4,
  /** The words of the namespace, and the whole id as one word. */
  id: 2,
  title: 3,
  tags: 3,
  parameters: 2,
  description: 2,
} as const
export type Field = keyof typeof FIELD_WEIGHTS

/** Of a longer text this much is searched. */
const MAX_TEXT_LENGTH = 4096

/** Gives the terms of a tool, field by field, repetitions included. */
export function fieldTerms(tool: Tool): Readonly<Record<Field, readonly string[]>> {
  const { id, namespace = '', name, title = '', description, tags, inputSchema } = tool
  return {
    name: namedTerms(name, name),
    id: namespace === '' ? [] : namedTerms(namespace, id),
    title: textTerms(title),
    tags: tags.flatMap((tag) => toTerms(tokenize(tag))),
    parameters: parameterNames(inputSchema).flatMap((parameter) => toTerms(tokenize(parameter))),
    description: textTerms(description),
  }
}

/** Gives the term that only a tool of this very name, or id, has. No word holds its sign. */
export function wholeTerm(joined: string): string {
  return `=${stem(joined)}`
}

function namedTerms(words: string, whole: string): readonly string[] {
  const joined = joinWords(whole)
  return [...new Set([...toTerms([...tokenize(words), joined]), wholeTerm(joined)])]
}

function textTerms(text: string): readonly string[] {
  return toTerms(tokenize(text.slice(0, MAX_TEXT_LENGTH)).filter((word) => !STOP_WORDS.has(word)))
}

export function toTerms(words: readonly string[]): readonly string[] {
  return words.map(stem)
}

const MAX_NAMES = 128
const MAX_SCHEMAS = 512
const MAX_DEPTH = 8

/** The keywords below which there are schemas: whether one or a list of them, or some by name. */
const KEYWORDS: ReadonlyMap<string, 'plain' | 'named'> = new Map([
  ...['items', 'prefixItems', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'].map(
    (keyword) => [keyword, 'plain'] as const,
  ),
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(
    (keyword) => [keyword, 'named'] as const,
  ),
])

/**
 * Gives the names of a schema's parameters, nested ones too, each once: at most 128, the outer ones first.
 *
 * By name and not as they were written, so that the order of keys changes nothing where the bound cuts.
 */
export function parameterNames(schema: JsonSchema): readonly string[] {
  const names = new Set<string>()
  let level: readonly unknown[] = [schema]
  let visited = 0
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: unknown[] = []
    for (const at of level) {
      if (!isObject(at)) continue
      if (++visited > MAX_SCHEMAS) return [...names]
      for (const name of sortedKeys(at['properties'])) {
        if (names.size >= MAX_NAMES) return [...names]
        names.add(name)
      }
      addBelow(next, at)
    }
    level = next
  }
  return [...names]
}

function addBelow(next: unknown[], schema: Readonly<Record<string, unknown>>): void {
  for (const keyword of sortedKeys(schema)) {
    const kind = KEYWORDS.get(keyword)
    const below = schema[keyword]
    if (kind === 'named') for (const name of sortedKeys(below)) next.push((below as Record<string, unknown>)[name])
    else if (kind === 'plain')
      next.push(...(Array.isArray(below) ? (below as unknown[]).slice(0, MAX_SCHEMAS) : [below]))
  }
}

function sortedKeys(value: unknown): readonly string[] {
  if (!isObject(value)) return []
  const keys = Object.keys(value)
  return keys.length > 1 ? keys.toSorted() : keys
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** English words that say nothing about a tool. They count in names, and in a query that has no others. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an and any are as at be been by can could do does for from has have how i if in into is it its me my of on or our
  please should so some than that the their them then there these this those to us use used using want was we what when
  which will with would you your`.split(/\s+/),
)

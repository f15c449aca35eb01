import { type JsonSchema, titleOf, type Tool } from '../tools/tool.ts'
import { isObject } from '@toolgate/values/json'
import { joinWords, stem, tokenize } from './tokenize.ts'

/**
 * The weight of a word by the field in which it occurs.
 *
 * Whole numbers, so that their sum is exact in any order. Tuned once on `relevance.test.json`, where halving or doubling
 * any one of them changes little.
 */
export const FIELD_WEIGHTS = {
  /** The words of the name, and the name as one word. */
  name: 4,
  /** The words of the namespace and of a resource's URI, and the whole id as one word. */
  id: 2,
  title: 3,
  tags: 3,
  parameters: 2,
  description: 2,
} as const
export type SearchField = keyof typeof FIELD_WEIGHTS
export const FIELDS: readonly SearchField[] = ['name', 'id', 'title', 'tags', 'parameters', 'description']

/** The most characters of a text that are indexed. */
const MAX_TEXT_LENGTH = 4096

/** Returns the terms of a tool, field by field, repetitions included. */
export function fieldTerms(tool: Tool): Readonly<Record<SearchField, readonly string[]>> {
  const { id, namespace = '', name, uri = '', description, tags, inputSchema } = tool
  return {
    name: namedTerms(name, name),
    id: namespace === '' ? [] : namedTerms(`${namespace} ${uri}`, id),
    title: textTerms(titleOf(tool) ?? ''),
    tags: tags.flatMap((tag) => toTerms(tokenize(tag))),
    parameters: parameterNames(inputSchema).flatMap((parameter) => toTerms(tokenize(parameter))),
    description: textTerms(description),
  }
}

/** Returns the term that only a tool with exactly this name or id has. No word contains its `=`. */
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

/** The keywords that contain schemas: `plain` for one or a list, `named` for an object of them. */
const KEYWORDS: ReadonlyMap<string, 'plain' | 'named'> = new Map([
  ...['items', 'prefixItems', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'].map(
    (keyword) => [keyword, 'plain'] as const,
  ),
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(
    (keyword) => [keyword, 'named'] as const,
  ),
])

/**
 * Returns the names of a schema's parameters, with nested ones, each once: at most 128, outer ones first.
 *
 * Sorted by name, so that the order of keys does not decide which names are cut.
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
    if (kind === 'named' && isObject(below)) for (const name of sortedKeys(below)) next.push(below[name])
    else if (kind === 'plain') next.push(...[below].flat().slice(0, MAX_SCHEMAS))
  }
}

function sortedKeys(value: unknown): readonly string[] {
  if (!isObject(value)) return []
  const keys = Object.keys(value)
  return keys.length > 1 ? keys.toSorted() : keys
}

/** English words that do not describe a tool. They count only in names, and in a query of such words alone. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an and any are as at be been by can could do does for from has have how i if in into is it its me my of on or our
  please should so some than that the their them then there these this those to us use used using want was we what when
  which will with would you your`.split(/\s+/),
)

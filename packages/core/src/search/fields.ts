import type { Tool } from '../tools/tool.ts'
import { parameterNames } from './parameters.ts'
import { stem } from './stem.ts'
import { STOP_WORDS } from './stop-words.ts'
import { joinWords, tokenize } from './tokenize.ts'

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

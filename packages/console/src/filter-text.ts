/** A key of a filter, such as `user` in `user:ann`. It is also the name of the choice in the address. */
interface FilterKey {
  readonly name: string
  /** Says what the key selects. The suggestions show it. */
  readonly about: string
  /** All its values. Absent: any text. */
  readonly values?: readonly string[]
  /** Returns what is wrong with a value, or an empty text. */
  readonly check?: (value: string) => string
}

/** The keys and words that a filter may have. */
export interface FilterGrammar {
  readonly keys: readonly FilterKey[]
  /** The name of the choice for words without a key. Absent: the list cannot be searched by words. */
  readonly text?: string
}

interface ParsedFilter {
  /** The values by the names of the choices. */
  readonly values: ReadonlyMap<string, string>
  /** What is wrong, as sentences. */
  readonly problems: readonly string[]
}

/** The longest value that the API takes. */
const MAX_VALUE = 256

/**
 * Parses the text of a filter: `user:ann outcome:failed "any text"`. Values and words with spaces stand in quotes.
 *
 * @example
 * parseFilter('user:ann no disk', grammar).values // Map { user => 'ann', text => 'no disk' }
 */
export function parseFilter(filter: string, grammar: FilterGrammar): ParsedFilter {
  const values = new Map<string, string>()
  const problems: string[] = []
  const words: string[] = []
  for (const { key, value } of toTokens(filter)) {
    if (key === undefined) {
      words.push(value)
      continue
    }
    const known = grammar.keys.find(({ name }) => name === key.toLowerCase())
    const problem = known ? problemOf(known, value, values) : unknownKey(key, value, grammar)
    if (problem !== '') problems.push(problem)
    else if (known) values.set(known.name, value)
  }
  const text = words.join(' ').trim()
  if (text !== '' && grammar.text === undefined)
    problems.push(`This list is not searched by words: write a key before “${text}”, such as ${exampleOf(grammar)}.`)
  else if (text.length > MAX_VALUE) problems.push(`The text is longer than ${MAX_VALUE} characters.`)
  else if (text !== '' && grammar.text !== undefined) values.set(grammar.text, text)
  return { values, problems }
}

/** Returns the text of a filter that `parseFilter` reads back. `of`: the choice by its name, empty if it is not set. */
export function formatFilter(of: (name: string) => string, { keys, text }: FilterGrammar): string {
  const parts = keys.flatMap(({ name }) => (of(name) === '' ? [] : [`${name}:${quote(of(name), /[\s"]/)}`]))
  const words = text === undefined ? '' : of(text)
  if (words !== '') parts.push(quote(words, /"|^\s|\s$|\s\s|[^\S ]|(^|\s)-?[a-z_]+:/i))
  return parts.join(' ')
}

/** A suggestion: the text of a part of the filter. */
interface FilterCompletion {
  readonly text: string
  readonly about: string
  /** Whether the part is complete. A key still needs its value. */
  readonly isWhole: boolean
}

interface Completing {
  /** The place of the part in the filter that a completion replaces. */
  readonly start: number
  readonly end: number
  readonly completions: readonly FilterCompletion[]
}

const MAX_COMPLETIONS = 10

/**
 * Returns the completions of the part at the caret: keys, and the values of a key. `seen` returns values of a key that
 * were seen in the list.
 */
export function completeFilter(
  filter: string,
  caret: number,
  { keys }: FilterGrammar,
  seen: (key: string) => Iterable<string>,
): Completing {
  const at = toTokens(filter).find(({ start, end }) => start <= caret && caret <= end)
  const { start, end } = at ?? { start: caret, end: caret }
  const typed = (at?.value ?? '').toLowerCase()
  const key = keys.find(({ name }) => name === at?.key?.toLowerCase())
  const found = key
    ? valuesOf(key, typed, seen)
    : at?.key === undefined
      ? [
          ...keys
            .filter(({ name }) => name.startsWith(typed))
            .map(({ name, about }) => ({ text: `${name}:`, about, isWhole: false })),
          ...(typed === '' ? [] : keys.flatMap((one) => valuesOf(one, typed, seen))),
        ]
      : []
  return { start, end, completions: found.slice(0, MAX_COMPLETIONS) }
}

/** Returns the filter without the part at the caret if that part has a key, whose value is still being typed. */
export function withoutTyped(filter: string, caret: number): string {
  const at = toTokens(filter).find(({ start, end }) => start <= caret && caret <= end)
  return at?.key === undefined ? filter : `${filter.slice(0, at.start)}${filter.slice(at.end)}`
}

function valuesOf(
  { name, values, about }: FilterKey,
  typed: string,
  seen: (key: string) => Iterable<string>,
): readonly FilterCompletion[] {
  const known = new Set(values ?? seen(name))
  return [...known]
    .filter((value) => value !== '' && value.toLowerCase().includes(typed) && value.length <= MAX_VALUE)
    .toSorted((a, b) => Number(b.toLowerCase().startsWith(typed)) - Number(a.toLowerCase().startsWith(typed)))
    .map((value) => ({ text: `${name}:${quote(value, /[\s"]/)}`, about, isWhole: true }))
}

/** A part of a filter. `start` and `end` are its place in the text. */
interface FilterToken {
  readonly key?: string
  readonly value: string
  readonly start: number
  readonly end: number
}

const TOKEN = /(?:(-?[a-z_]+):)?(?:"((?:[^"\\]|\\.)*)(?:"|\\?$)|(\S*))/giy

function toTokens(filter: string): readonly FilterToken[] {
  const tokens: FilterToken[] = []
  for (let at = 0; at < filter.length;) {
    if (/\s/.test(filter[at] ?? '')) {
      at++
      continue
    }
    TOKEN.lastIndex = at
    const [whole = '', key, quoted, plain = ''] = TOKEN.exec(filter) ?? []
    const end = at + Math.max(1, whole.length)
    const value = quoted === undefined ? plain : quoted.replaceAll(/\\(.)/g, '$1')
    tokens.push({ ...(key !== undefined && { key }), value, start: at, end })
    at = end
  }
  return tokens
}

function quote(value: string, special: RegExp): string {
  return special.test(value) ? `"${value.replaceAll(/["\\]/g, (mark) => `\\${mark}`)}"` : value
}

function problemOf({ name, values, check }: FilterKey, value: string, set: ReadonlyMap<string, string>): string {
  if (set.has(name)) return `“${name}” is there twice: a list is filtered by one value of each key.`
  if (value === '') return `“${name}:” has no value.`
  if (value.length > MAX_VALUE) return `The value of “${name}” is longer than ${MAX_VALUE} characters.`
  if (values && !values.includes(value)) return `“${name}” is never “${value}”: it is one of ${values.join(', ')}.`
  return check?.(value) ?? ''
}

function unknownKey(key: string, value: string, { keys, text }: FilterGrammar): string {
  const name = key.replace(/^-/, '')
  if (name !== key && keys.some((one) => one.name === name.toLowerCase()))
    return `A filter selects, and cannot leave out: write “${name}:${value}” without the “-”.`
  const near = keys.filter((one) => isNear(one.name, name.toLowerCase())).map((one) => one.name)
  const words = text === undefined ? '' : ` To search for it as a text, write "${key}:${value}" in quotes.`
  return near.length > 0
    ? `There is no key “${key}”: is it ${near.join(' or ')}?${words}`
    : `There is no key “${key}”. The keys are ${keys.map((one) => one.name).join(', ')}.${words}`
}

/** Returns whether a name was probably meant: one contains the other, or they have the same letters but for one or two. */
function isNear(name: string, typed: string): boolean {
  if (name.startsWith(typed) || typed.startsWith(name)) return true
  const rest = Array.from(name)
  let others = 0
  for (const letter of typed) {
    const at = rest.indexOf(letter)
    if (at === -1) others++
    else rest.splice(at, 1)
  }
  return typed.length > 2 && others + rest.length <= 2 && name[0] === typed[0]
}

function exampleOf({ keys: [first] }: FilterGrammar): string {
  return first ? `${first.name}:${first.values?.[0] ?? '…'}` : ''
}

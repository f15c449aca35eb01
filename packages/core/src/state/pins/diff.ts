import { diffArrays } from 'diff/lib/diff/array.js'
import { canonicalize, escapePointer, isObject } from '@toolgate/values/json'
import { cut } from '@toolgate/values'
import { spellOut } from './characters.ts'

interface DefinitionChange {
  /** RFC 6901, into the definition: `/description`, `/inputSchema/properties/path/type`. */
  readonly pointer: string
  readonly kind: 'added' | 'removed' | 'changed'
  /** The old and the new text, with invisible characters spelt out. For people. */
  readonly text: string
}

export interface DefinitionDiff {
  /** In the order of their pointers; the first 50. */
  readonly changes: readonly DefinitionChange[]
  /** How many more there are. */
  readonly more: number
  /** The whole of it, a line for each change. */
  readonly text: string
}

const MAX_CHANGES = 50
const MAX_POINTER = 200
const MAX_TEXT = 600
/** The most characters of a text that are compared word by word. */
const MAX_COMPARED = 20_000

/** Returns what was added, removed and changed between two definitions, and where. */
export function diffDefinitions(before: unknown, after: unknown): DefinitionDiff {
  if (before === undefined) {
    return toDiff([{ pointer: '', kind: 'changed', text: 'the former definition is no longer stored' }])
  }
  const changes: DefinitionChange[] = []
  compare(before, after, '', changes)
  return toDiff(changes)
}

function toDiff(all: readonly DefinitionChange[]): DefinitionDiff {
  const changes = all.slice(0, MAX_CHANGES)
  const more = all.length - changes.length
  const lines = changes.map(({ pointer, kind, text }) => `${SIGNS[kind]} ${pointer || '(all of it)'}: ${text}`)
  if (more > 0) lines.push(`… and ${more} more`)
  return { changes, more, text: lines.join('\n') }
}

const SIGNS = { added: '+', removed: '-', changed: '~' } as const

function compare(before: unknown, after: unknown, pointer: string, changes: DefinitionChange[]): void {
  const push = (kind: DefinitionChange['kind'], text: string) =>
    changes.push({ pointer: cut(spellOut(pointer), MAX_POINTER), kind, text: cut(text, MAX_TEXT) })
  if (isNothing(before) || isNothing(after)) {
    if (isNothing(before) && !isNothing(after)) push('added', told(after))
    else if (isNothing(after) && !isNothing(before)) push('removed', told(before))
    else if (before !== after) push('changed', `${told(before)} → ${told(after)}`)
  } else if (typeof before === 'string' && typeof after === 'string') {
    if (before !== after) push('changed', changedText(before, after))
  } else if (Array.isArray(before) && Array.isArray(after)) {
    if (isPlainList(before) && isPlainList(after)) compareLists(before, after, push)
    else compareKeys(before, after, pointer, changes)
  } else if (isObject(before) && isObject(after)) {
    compareKeys(before, after, pointer, changes)
  } else if (before !== after) push('changed', `${told(before)} → ${told(after)}`)
}

/** A definition has `null` if it has no title or output schema. */
function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null
}

/** Changes of blanks and empty texts must be visible, too. */
function changedText(before: string, after: string): string {
  const a = spellOut(before.slice(0, MAX_COMPARED))
  const b = spellOut(after.slice(0, MAX_COMPARED))
  if (a === b) return `${before.length} → ${after.length} characters, and the first ${MAX_COMPARED} are the same`
  return diffWords(a, b)
}

type Push = (kind: DefinitionChange['kind'], text: string) => void

/** Compares names and choices as sets, and by order only if the sets are equal. */
function compareLists(before: readonly unknown[], after: readonly unknown[], push: Push): void {
  const [old, now] = [countsOf(before), countsOf(after)]
  const added = [...now].filter(([item, count]) => count > (old.get(item) ?? 0)).map(([item]) => item)
  const removed = [...old].filter(([item, count]) => count > (now.get(item) ?? 0)).map(([item]) => item)
  if (added.length > 0) push('added', added.map((item) => told(item)).join(', '))
  if (removed.length > 0) push('removed', removed.map((item) => told(item)).join(', '))
  if (added.length + removed.length === 0 && before.some((item, i) => item !== after[i])) {
    push('changed', `the order is now ${told(after)}`)
  }
}

function countsOf(items: readonly unknown[]): ReadonlyMap<unknown, number> {
  const counts = new Map<unknown, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}

function compareKeys(before: object, after: object, pointer: string, changes: DefinitionChange[]): void {
  const [old, now] = [new Map<string, unknown>(Object.entries(before)), new Map<string, unknown>(Object.entries(after))]
  const keys = [...new Set([...old.keys(), ...now.keys()])]
  for (const key of Array.isArray(before) ? keys : keys.toSorted()) {
    const below = `${pointer}/${escapePointer(key)}`
    const isNew = !old.has(key)
    if (isNew || !now.has(key)) {
      changes.push({
        pointer: cut(spellOut(below), MAX_POINTER),
        kind: isNew ? 'added' : 'removed',
        text: cut(told(isNew ? now.get(key) : old.get(key)), MAX_TEXT),
      })
    } else compare(old.get(key), now.get(key), below, changes)
  }
}

function isPlainList(items: readonly unknown[]): boolean {
  return items.every((item) => typeof item !== 'object' || item === null)
}

/** Canonical, so that the order of keys does not matter. */
function told(value: unknown): string {
  return spellOut(canonicalize(value))
}

/** The number of unchanged words shown on each side of a change. */
const CONTEXT = 4
/** Texts that need more than this many words added or removed are shown as replaced. The cost grows with its square. */
const MAX_EDITS = 400

/**
 * Returns how one text became another: `Reads a file.{+ Also send it to me.+}`, with removed words as `[-so-]` and
 * unchanged text shortened to the words beside a change.
 */
function diffWords(before: string, after: string): string {
  const [a, b] = [wordsOf(before), wordsOf(after)]
  const shorter = Math.min(a.length, b.length)
  let start = 0
  while (start < shorter && a[start] === b[start]) start++
  let end = 0
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++
  const runs: WordRun[] = [
    { value: a.slice(0, start) },
    ...compareWords(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    { value: a.slice(a.length - end) },
  ]
  const shown = runs.filter(({ value }) => value.length > 0)
  return shown.map((run, i) => show(run, i === 0, i === shown.length - 1)).join('')
}

function compareWords(removed: string[], added: string[]): readonly WordRun[] {
  const runs = diffArrays(removed, added, { maxEditLength: MAX_EDITS })
  return (
    runs ?? [
      { value: removed, removed: true },
      { value: added, added: true },
    ]
  )
}

/** Splits a text into words and the blanks between them, and text without blanks, such as Chinese, into characters. */
function wordsOf(text: string): string[] {
  return (
    text.match(
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|\s+|\w+|[\p{L}\p{M}\p{N}]+?(?![\p{L}\p{M}\p{N}])|./gsu,
    ) ?? []
  )
}

/** Words that both texts have (neither flag is set), or that one has. */
interface WordRun {
  readonly value: readonly string[]
  readonly removed?: boolean
  readonly added?: boolean
}

function show({ value, removed, added }: WordRun, isFirst: boolean, isLast: boolean): string {
  const text = value.join('')
  if (removed) return `[-${text}-]`
  if (added) return `{+${text}+}`
  const around = CONTEXT * 2
  const head = isFirst ? [] : value.slice(0, around)
  const tail = isLast ? [] : value.slice(-around)
  if (value.length <= head.length + tail.length) return text
  return `${head.join('')}…${tail.join('')}`
}

import { skeleton } from '../../tools/confusables.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import type { DefinitionFinding } from './definition-check.ts'
import { cut, editDistance, formatNonAscii } from '@toolgate/values'

/** Shorter words are similar to too many honest ones: `get` and `set`, `list` and `lint`. */
const MIN_WORD = 6
const MAX_NAMED = 3
const MAX_COMPARED = 64

/**
 * Finds names that look like another tool's name, and names that differ from one in another namespace only by a plural, the
 * way words are joined, or one typo in a long word.
 *
 * Equal names in two namespaces are no finding, because namespaces exist for that.
 */
export function findNearNames(snapshot: Toolset): ReadonlyMap<string, readonly DefinitionFinding[]> {
  const names = [...new Set(snapshot.tools.map(({ name }) => name))]
  const found = new Map<string, DefinitionFinding[]>()
  const byName = new Map<string, Tool[]>()
  for (const tool of snapshot) push(byName, tool.name, tool)
  const say = (tool: Tool, code: 'name_lookalike' | 'name_near_duplicate', others: readonly Tool[]) => {
    const list = others
      .slice(0, MAX_NAMED)
      .map(({ id }) => spelt(id))
      .join(', ')
    const rest = others.length > MAX_NAMED ? ' …' : ''
    const how = code === 'name_lookalike' ? 'looks like' : 'is nearly the name of'
    push(found, tool.id, { code, pointer: '/name', text: `/name ${spelt(tool.id)} ${how} ${list}${rest}` })
  }
  for (const group of groupsBy(names, skeleton)) {
    eachOther(group, byName, (tool, others) => say(tool, 'name_lookalike', others))
  }
  for (const group of [...groupsBy(names, plainForm), ...slips(names)]) {
    eachOther(group, byName, (tool, others) => {
      const elsewhere = others.filter(({ namespace }) => namespace !== tool.namespace)
      if (elsewhere.length > 0) say(tool, 'name_near_duplicate', elsewhere)
    })
  }
  return found
}

function eachOther(
  group: readonly string[],
  byName: ReadonlyMap<string, readonly Tool[]>,
  say: (tool: Tool, others: readonly Tool[]) => void,
): void {
  const some = group.slice(0, MAX_COMPARED)
  for (const name of some) {
    const others = some.filter((other) => other !== name).flatMap((other) => byName.get(other) ?? [])
    for (const tool of byName.get(name) ?? []) say(tool, others)
  }
}

function groupsBy(names: readonly string[], keyOf: (name: string) => string): readonly (readonly string[])[] {
  const groups = new Map<string, string[]>()
  for (const name of names) push(groups, keyOf(name), name)
  return [...groups.values()].filter((group) => group.length > 1)
}

/** `sendEmails`, `send-email` and `send_email` have one plain form. */
function plainForm(name: string): string {
  return wordsOf(name).map(singular).join('')
}

function wordsOf(name: string): readonly string[] {
  return name
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter((word) => word !== '')
}

function singular(word: string): string {
  if (word.length < 4 || !word.endsWith('s') || word.endsWith('ss') || word.endsWith('us')) return word
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return /(?:s|x|z|ch|sh)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1)
}

/** Pairs of names that differ in one letter of one long word, and not in its first. */
function slips(names: readonly string[]): readonly (readonly string[])[] {
  const near = new Map<string, { readonly name: string; readonly word: string }[]>()
  for (const name of names) {
    const words = wordsOf(name).map(singular)
    for (const [i, word] of words.entries()) {
      if (word.length < MIN_WORD || /\d/.test(word)) continue
      const around = `${words.slice(0, i).join(' ')}|${words.slice(i + 1).join(' ')}`
      for (const part of [word, ...deletionsOf(word)]) push(near, `${around}|${part}`, { name, word })
    }
  }
  const pairs = new Map<string, readonly string[]>()
  for (const group of near.values()) {
    if (group.length < 2) continue
    for (const [i, a] of group.slice(0, MAX_COMPARED).entries()) {
      for (const b of group.slice(i + 1, MAX_COMPARED)) {
        if (editDistance(a.word, b.word, 2) === 1) pairs.set([a.name, b.name].toSorted().join(' '), [a.name, b.name])
      }
    }
  }
  return [...pairs.values()]
}

/** Words that share one of these, or the word itself, are at most two slips apart. */
function deletionsOf(word: string): readonly string[] {
  return Array.from({ length: word.length - 1 }, (_, i) => word.slice(0, i + 1) + word.slice(i + 2))
}

function spelt(id: string): string {
  const codes = formatNonAscii(id)
  const quoted = JSON.stringify(cut(id, 200))
  return codes.length === 0 ? quoted : `${quoted} (with ${codes.join(' ')})`
}

function push<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}

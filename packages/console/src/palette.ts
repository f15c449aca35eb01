import { linkTo } from './address.ts'
import { wordsOfTarget } from './halts.ts'
import type { CallersBody, HaltRow, ToolRow, WaitingApprovalRow } from './wire.ts'

/** The kinds of entries. Equally good matches have this order. */
const ENTRY_KINDS = ['page', 'approval', 'halt', 'caller', 'tool', 'calls'] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

/** An entry of the palette, which leads to a page or a control. */
export interface Entry {
  readonly kind: EntryKind
  readonly text: string
  readonly detail?: string
  readonly href: string
  /** The id of an element to focus there. */
  readonly focus?: string
}

interface Places {
  readonly pages: readonly { readonly text: string; readonly href: string }[]
  readonly tools: readonly Pick<ToolRow, 'id' | 'title'>[]
  readonly callers: CallersBody['callers']
  readonly approvals: readonly Pick<WaitingApprovalRow, 'id' | 'tool' | 'user'>[]
  readonly halts: readonly Pick<HaltRow, 'id' | 'target' | 'reason'>[]
  /** The address of this page, for entries that are on every page. */
  readonly here: string
}

export function toEntries({ pages, tools, callers, approvals, halts, here }: Places): readonly Entry[] {
  return [
    ...pages.map((page): Entry => ({ kind: 'page', ...page })),
    ...approvals.map(({ id, tool, user = '' }): Entry => ({
      kind: 'approval',
      text: tool,
      detail: user,
      href: linkTo('approvals', { id }),
    })),
    ...halts.map(({ id, target, reason }): Entry => {
      return { kind: 'halt', text: wordsOfTarget(target), detail: reason, href: here, focus: `halt-${id}` }
    }),
    ...callers.map(({ user, tenant, roles }): Entry => {
      const detail = [...(tenant === undefined ? [] : [`of ${tenant}`]), ...roles].join(', ')
      return { kind: 'caller', text: user, detail, href: linkTo('tools', { as: user }) }
    }),
    ...tools.map(({ id, title = '' }): Entry => ({
      kind: 'tool',
      text: id,
      detail: title,
      href: linkTo('tool', { id }),
    })),
  ]
}

/** Returns the entry that searches all calls for the typed text. It is the last one in the list. */
export function toSearch(query: string): Entry | undefined {
  const text = query.trim()
  return text === '' ? undefined : { kind: 'calls', text, detail: 'search all calls', href: linkTo('calls', { text }) }
}

interface Found {
  readonly entries: readonly Entry[]
  /** The number of other matches. */
  readonly more: number
}

/** Returns the entries that contain every word of a query, in any case, the best first. */
export function findEntries(entries: readonly Entry[], query: string, max: number): Found {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const ranked = entries.flatMap((entry) => {
    const rank = rankOf(entry, words)
    return rank === undefined ? [] : [{ entry, rank }]
  })
  // The sort is stable: entries of one kind and rank keep their order.
  ranked.sort((a, b) => a.rank - b.rank || kindAt(a.entry) - kindAt(b.entry))
  return { entries: ranked.slice(0, max).map(({ entry }) => entry), more: Math.max(0, ranked.length - max) }
}

function kindAt({ kind }: Entry): number {
  return ENTRY_KINDS.indexOf(kind)
}

/**
 * Returns the rank of a match. 0: the whole text; 1: the text's beginning; 2: a part of the text; 3: elsewhere.
 * `undefined` if a word is missing.
 */
function rankOf({ text, detail = '' }: Entry, words: readonly string[]): number | undefined {
  const own = text.toLowerCase()
  const all = `${own} ${detail.toLowerCase()}`
  if (!words.every((word) => all.includes(word))) return undefined
  const [first = ''] = words
  if (own === words.join(' ')) return 0
  if (own.startsWith(first)) return 1
  return own.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(first)) ? 2 : 3
}

import { ConfigError } from '../errors.ts'
import { spend, type Work } from '../work.ts'
import type { Span } from './spans.ts'

const MIN_SECRET_LENGTH = 6
export const EXACT_NAME = 'secret'

/** Returns the spans of given texts in another; `undefined` if there are none. @throws {WorkSpentError} */
export type FindSpans = (text: string, work: Work) => readonly Span[] | undefined

/**
 * Returns a search for exact secrets, including their percent-encoded, JSON-escaped and base64 forms.
 *
 * Takes time linear in the text for any secrets: a filter of hashed windows finds the first possible position, and an
 * automaton (Aho and Corasick, 1975) continues from there. A secret under 6 characters is ignored and reported to
 * `onIgnored`, because it would match too much.
 */
export function createExactMatcher(secrets: readonly string[], onIgnored: (error: ConfigError) => void): FindSpans {
  const forms = new Set<string>()
  secrets.forEach((secret, i) => {
    if (typeof secret === 'string' && secret.length >= MIN_SECRET_LENGTH)
      for (const form of formsOf(secret)) forms.add(form)
    else
      onIgnored(
        new ConfigError(`secrets[${i}]`, `expected a text of at least ${MIN_SECRET_LENGTH} characters; left out`),
      )
  })
  if (forms.size === 0) return () => undefined
  const mayBegin = createFilter(forms)
  const search = createAutomaton(forms)
  return (text, work) => {
    const from = mayBegin(text)
    return from === -1 ? undefined : search(text, from, work)
  }
}

/** Returns the spellings of a secret. */
function formsOf(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1)
  const forms = [secret, escaped, JSON.stringify(escaped).slice(1, -1), ...base64Forms(secret)]
  if (secret.isWellFormed()) {
    const percent = encodeURIComponent(secret)
    forms.push(
      percent,
      percent.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
      percent.replaceAll('%20', '+'),
    )
  }
  return forms.filter((form) => form.length >= MIN_SECRET_LENGTH)
}

const MIN_BASE64 = 8

/**
 * Returns a secret's bytes in base64, for each of the three positions where they may begin in a group.
 * Characters that also depend on neighbouring bytes are left out.
 */
function base64Forms(secret: string): string[] {
  const bytes = new TextEncoder().encode(secret)
  const forms: string[] = []
  for (const before of [0, 1, 2]) {
    const padded = new Uint8Array(before + bytes.length)
    padded.set(bytes, before)
    const first = before === 0 ? 0 : before + 1
    const core = toBase64(padded).slice(first, Math.floor((padded.length * 8) / 6))
    if (core.length >= MIN_BASE64) forms.push(core, core.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return forms
}

function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

const SHIFT_BITS = 14
const WINDOW_BITS = 16

/** Returns a filter for the first position at which a secret may begin, or -1 (Wu and Manber, 1994). */
function createFilter(forms: ReadonlySet<string>): (text: string) => number {
  const furthest = MIN_SECRET_LENGTH - 2
  const shifts = new Uint8Array(1 << SHIFT_BITS).fill(furthest)
  const windows = new Uint8Array(1 << WINDOW_BITS)
  for (const form of forms) {
    for (let end = 2; end < MIN_SECRET_LENGTH; end++) {
      const block = hashBlock(form, end)
      shifts[block] = Math.min(shifts[block] ?? 0, MIN_SECRET_LENGTH - 1 - end)
    }
    windows[hashWindow(form, 0)] = 1
  }
  return (text) => {
    for (let end = MIN_SECRET_LENGTH - 1; end < text.length;) {
      const shift = shifts[hashBlock(text, end)] ?? 0
      if (shift > 0) end += shift
      else {
        const start = end - MIN_SECRET_LENGTH + 1
        if (windows[hashWindow(text, start)] === 1) return start
        end++
      }
    }
    return -1
  }
}

function hashBlock(text: string, end: number): number {
  const hash = (text.charCodeAt(end - 2) * 961 + text.charCodeAt(end - 1) * 31 + text.charCodeAt(end)) | 0
  return (hash ^ (hash >>> SHIFT_BITS)) & ((1 << SHIFT_BITS) - 1)
}

function hashWindow(text: string, start: number): number {
  let hash = 0
  for (let i = start; i < start + MIN_SECRET_LENGTH; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
  return (hash ^ (hash >>> WINDOW_BITS)) & ((1 << WINDOW_BITS) - 1)
}

interface TrieState {
  readonly next: Map<number, TrieState>
  fail: TrieState | undefined
  /** Length of the longest secret that ends here. */
  ends: number
}

/** Steps for each secret found. */
const FOUND_STEPS = 150

type FindForms = (text: string, from: number, work: Work) => readonly Span[] | undefined

function createAutomaton(forms: ReadonlySet<string>): FindForms {
  const root = linkFailures(buildTrie(forms))
  return (text, from, work) => {
    const spans: Span[] = []
    let state = root
    for (let i = from; i < text.length; i++) {
      const code = text.charCodeAt(i)
      let next = state.next.get(code)
      while (next === undefined && state.fail) {
        state = state.fail
        next = state.next.get(code)
      }
      state = next ?? root
      if (state.ends > 0) {
        spend(work, FOUND_STEPS)
        addEnd(spans, i + 1 - state.ends, i + 1)
      }
    }
    return spans.length > 0 ? spans : undefined
  }
}

/** Adds a match. Ends arrive in order; a match that overlaps earlier ones is merged with them. */
function addEnd(spans: Span[], start: number, end: number): void {
  let from = start
  for (let last = spans.at(-1); last && last.end > from; last = spans.at(-1)) {
    from = Math.min(from, last.start)
    spans.pop()
  }
  spans.push({ start: from, end, name: EXACT_NAME })
}

function buildTrie(forms: ReadonlySet<string>): TrieState {
  const root = createState()
  for (const form of forms) {
    let state = root
    for (let i = 0; i < form.length; i++) {
      const code = form.charCodeAt(i)
      const next = state.next.get(code) ?? createState()
      state.next.set(code, next)
      state = next
    }
    state.ends = form.length
  }
  return root
}

function createState(): TrieState {
  return { next: new Map(), fail: undefined, ends: 0 }
}

/** Links states in order of depth, so that a state's fallback is complete before it. */
function linkFailures(root: TrieState): TrieState {
  const queue = [root]
  // The queue grows during the loop.
  for (const state of queue) {
    for (const [code, child] of state.next) {
      let back = state.fail
      while (back && !back.next.has(code)) back = back.fail
      child.fail = (state === root ? root : back?.next.get(code)) ?? root
      if (child.ends === 0) child.ends = child.fail.ends
      queue.push(child)
    }
  }
  return root
}

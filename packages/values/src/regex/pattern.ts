import type { Work } from '../work.ts'
import { Automaton } from './automaton.ts'
import { createLookingSearch, looksIn } from './looks.ts'
import { parsePattern } from './parse.ts'
import { compileProgram, MAX_INSTRUCTIONS, sizeOf } from './program.ts'
import { type PatternDialect, type LookAround, type Node, PatternError } from './syntax.ts'

/** A pattern that takes time linear in the text. */
export interface Pattern {
  /** The number of its instructions, on which its memory depends. */
  readonly size: number
  /** Returns whether the pattern matches anywhere in a text. @throws {WorkSpentError} when the steps run out */
  test(text: string, work: Work): boolean
}

interface Match {
  readonly start: number
  readonly end: number
}

/** A pattern that also returns its matches. */
export interface Finder extends Pattern {
  /** Returns the non-empty matches from left to right, each as Perl would find it. @throws {WorkSpentError} */
  matches(text: string, work: Work): readonly Match[]
}

/**
 * Creates a pattern for testing texts. Lookaheads after a leading `^` become separate patterns (`^(?=.*[0-9])(?!.*\.\.)…`),
 * which end at their first match.
 *
 * @throws {PatternError} for an unsupported pattern, with the reason
 */
export function createPattern(source: string, dialect: PatternDialect): Pattern {
  const { main, looks } = splitLooks(parsePattern(source, dialect))
  const all = [{ body: main, negative: false }, ...looks].map(({ body, negative }) => ({
    ...searchFor(body),
    negative,
  }))
  return {
    size: all.reduce((total, { size }) => total + size, 0),
    test: (text, work) => all.every(({ find, negative }) => find(text, work) !== negative),
  }
}

/** Creates a pattern that returns its matches. @throws {PatternError} like `createPattern` */
export function createFinder(source: string, dialect: PatternDialect): Finder {
  const node = parsePattern(source, dialect)
  const { find, size } = searchFor(node)
  const forward = new Automaton(compileProgram(node, 'forward'), { anchored: false, wanted: 'preferred' })
  const backward = new Automaton(compileProgram(node, 'backward'), { anchored: true, wanted: 'longest' })
  return {
    size,
    test: find,
    matches(text, work) {
      const found: Match[] = []
      if (!find(text, work)) return found
      for (let at = 0; at <= text.length;) {
        const end = forward.findEnd(text, at, work)
        if (end === -1) break
        const start = backward.findStart(text, end, at, work)
        if (end > start) found.push({ start, end })
        // An empty match is skipped, with the character after it.
        at = end > at ? end : at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
      }
      return found
    },
  }
}

/**
 * Returns a pattern that matches wherever any of several does, in one pass over the text; `undefined` if the result would
 * be too large.
 */
export function createUnion(sources: readonly string[], dialect: PatternDialect): Pattern | undefined {
  const node: Node = { kind: 'choice', options: sources.map((source) => parsePattern(source, dialect)) }
  if (sizeOf(node) > MAX_INSTRUCTIONS) return undefined
  const { size, find } = searchFor(node)
  return { size, test: find }
}

interface PatternSearch {
  readonly size: number
  readonly find: (text: string, work: Work) => boolean
}

/** Returns a search that creates its automaton at the first test, because many listed tools are never called. */
function searchFor(node: Node): PatternSearch {
  const size = sizeOf(node)
  if (size > MAX_INSTRUCTIONS)
    throw new PatternError(
      `it has ${size} steps once its repeats are written out; at most ${MAX_INSTRUCTIONS} are allowed`,
    )
  const looks = looksIn(node)
  let find: PatternSearch['find'] | undefined
  return {
    size,
    find: (text, work) =>
      (find ??= looks.length > 0 ? createLookingSearch(node, looks) : createSearch(node))(text, work),
  }
}

function createSearch(node: Node): PatternSearch['find'] {
  const automaton = new Automaton(compileProgram(node, 'forward'), { anchored: false, wanted: 'any' })
  return (text, work) => automaton.findEnd(text, 0, work) !== -1
}

const TEXT_START: Node = { kind: 'assertion', assertion: 'text start' }

/** Separates the lookaheads at the very start of a pattern from the rest. */
function splitLooks(node: Node): {
  readonly main: Node
  readonly looks: readonly Omit<LookAround, 'kind' | 'direction'>[]
} {
  const [first, ...rest] = node.kind === 'sequence' ? node.parts : []
  if (first?.kind !== 'assertion' || first.assertion !== 'text start') return { main: node, looks: [] }
  const count = rest.findIndex((part) => part.kind !== 'look' || part.direction === 'behind')
  const looks = rest.slice(0, count === -1 ? rest.length : count)
  return {
    main: { kind: 'sequence', parts: [first, ...rest.slice(looks.length)] },
    looks: looks.flatMap((look) =>
      look.kind === 'look'
        ? [{ body: { kind: 'sequence', parts: [TEXT_START, look.body] }, negative: look.negative }]
        : [],
    ),
  }
}

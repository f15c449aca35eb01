import { spend, type Work } from '../work.ts'
import { Automaton } from './automaton.ts'
import { compileProgram, type Direction, MAX_LOOKS } from './program.ts'
import { type LookAround, type Node, PatternError } from './syntax.ts'

/** How many positions are cleared in one step. */
const MARKS_PER_STEP = 16

/**
 * Returns the lookarounds of a pattern, inner ones first.
 *
 * @throws {PatternError} for more than 8
 */
export function looksIn(node: Node): readonly LookAround[] {
  const found = new Set<LookAround>()
  collect(node)
  if (found.size > MAX_LOOKS) throw new PatternError(`it has more than ${MAX_LOOKS} lookarounds`)
  return [...found]

  function collect(part: Node): void {
    if (part.kind === 'repeat' || part.kind === 'look') collect(part.body)
    else if (part.kind === 'sequence') part.parts.forEach(collect)
    else if (part.kind === 'choice') part.options.forEach(collect)
    if (part.kind === 'look') found.add(part)
  }
}

/**
 * Returns a search for a pattern with lookarounds, in time linear in the text (Barrière and Pit-Claudel, "Linear Matching of
 * JavaScript Regular Expressions", 2024).
 *
 * Each lookaround runs over the whole text once, a lookahead from its end, and marks the positions where it matches. The pattern
 * reads the marks.
 */
export function createLookingSearch(node: Node, looks: readonly LookAround[]): (text: string, work: Work) => boolean {
  const passes = looks.map(({ body, direction }, bit) => {
    const way: Direction = direction === 'behind' ? 'forward' : 'backward'
    return { way, flag: 1 << bit, automaton: createAutomaton(body, way, 'longest') }
  })
  const main = createAutomaton(node, 'forward', 'any')
  return (text, work) => {
    spend(work, text.length / MARKS_PER_STEP)
    const marks = new Uint8Array(text.length + 1)
    for (const { way, flag, automaton } of passes) {
      const onMatch = (at: number) => {
        marks[at] = (marks[at] as number) | flag
        return false
      }
      automaton.runMarked(text, { direction: way, marks, onMatch }, work)
    }
    let isFound = false
    main.runMarked(text, { direction: 'forward', marks, onMatch: () => (isFound = true) }, work)
    return isFound
  }

  function createAutomaton(body: Node, way: Direction, wanted: 'any' | 'longest'): Automaton {
    return new Automaton(compileProgram(body, way, looks), { anchored: false, wanted })
  }
}

import { type Glob, matchesGlob, type Selector } from './selector.ts'

interface NamePattern {
  /** `undefined`: any, or none. */
  readonly namespace: Glob | undefined
  readonly name: Glob
}

/**
 * Returns whether some tool can match both selectors, whether or not there is one now.
 *
 * Names are compared as patterns. A tag, category or hint overlaps with itself only: other tools that have it are
 * known once they exist.
 */
export function selectorsOverlap(a: Selector, b: Selector): boolean {
  const [left, right] = [toPattern(a), toPattern(b)]
  if (!left || !right) return a.kind === b.kind && a.text === b.text
  return namespacesOverlap(left.namespace, right.namespace) && globsOverlap(left.name, right.name)
}

function toPattern(selector: Selector): NamePattern | undefined {
  if (selector.kind === 'glob') return selector
  if (selector.kind !== 'id') return undefined
  const [name = '', namespace = ''] = (selector.target ?? selector.text).split(':').toReversed()
  return { namespace: [namespace], name: [name] }
}

function namespacesOverlap(a: Glob | undefined, b: Glob | undefined): boolean {
  return a === undefined || b === undefined || globsOverlap(a, b)
}

function globsOverlap(a: Glob, b: Glob): boolean {
  if (a.length === 1) return matchesGlob(b, a[0] as string)
  if (b.length === 1) return matchesGlob(a, b[0] as string)
  // The stars of one take in whatever the other demands in between, so only the two ends can rule it out.
  const [headA = '', headB = '', tailA = '', tailB = ''] = [a[0], b[0], a.at(-1), b.at(-1)]
  const headsAgree = headA.startsWith(headB) || headB.startsWith(headA)
  return headsAgree && (tailA.endsWith(tailB) || tailB.endsWith(tailA))
}

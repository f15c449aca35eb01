import { matchesGlob } from './glob.ts'
import { findUriProblem, isNormalUri } from './uri.ts'

/** A URI template (RFC 6570), parsed only to rule out URIs that it cannot match. */
export interface UriTemplate {
  readonly text: string
  /** Returns whether the template may match a URI. */
  readonly mayMatch: (uri: string) => boolean
  /** Returns whether the template may match a URI in normal form. */
  readonly matches: (uri: string) => boolean
}

const EXPRESSION = /\{([^{}]*)\}/
const SIMPLE = /^\+?[\w.%]+$/

/** Returns why a text is not a valid URI template; `undefined` if it is valid. */
export function findTemplateProblem(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'must be a string'
  const parts = text.split(EXPRESSION)
  if (parts.length === 1) return 'has no expression, such as {name}; a URI without one is a resource'
  if (parts.some((part, i) => (i % 2 === 1 ? part === '' : /[{}]/.test(part)))) return 'has braces that do not match'
  return findUriProblem(text.replaceAll(new RegExp(EXPRESSION, 'g'), (all) => 'x'.repeat(all.length)))
}

/**
 * Parses a template. Matching takes time linear in the URI.
 *
 * `{var}` matches text without `/`, and `{+var}` any text. A template with any other expression, or one that is not in
 * normal form itself, may match every URI. A URI that is not in normal form may match every template.
 */
export function parseUriTemplate(text: string): UriTemplate {
  const parts = text.split(EXPRESSION)
  const literals = parts.filter((_, i) => i % 2 === 0)
  const variables = parts.filter((_, i) => i % 2 === 1)
  const isPlain = variables.every((one) => SIMPLE.test(one)) && isNormalUri(literals.join('x'))
  if (!isPlain) return { text, mayMatch: anything, matches: anything }
  const matchesText = variables.some((one) => one.startsWith('+')) ? byText(literals) : bySegments(literals)
  // Some servers match only the path.
  const matches = (uri: string) =>
    matchesText(uri) || (uri.includes('?') && matchesText(uri.split('?', 1)[0] as string))
  return { text, mayMatch: (uri) => matches(uri) || !isNormalUri(uri), matches }
}

function anything(): boolean {
  return true
}

function byText(literals: readonly string[]): (uri: string) => boolean {
  return (uri) => matchesGlob(literals, uri)
}

/** No variable matches a `/`, so a URI matches segment by segment. */
function bySegments(literals: readonly string[]): (uri: string) => boolean {
  const segments = literals
    .join(STAR)
    .split('/')
    .map((segment) => segment.split(STAR))
  return (uri) => {
    const parts = uri.split('/')
    return parts.length === segments.length && segments.every((glob, i) => matchesGlob(glob, parts[i] as string))
  }
}

/** A character that no URI holds. */
const STAR = '\0'

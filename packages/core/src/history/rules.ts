import { createBoundedCache, sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'
import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { CallPattern, HistoryUse } from './facts.ts'

/** The facts that histories must keep for the loaded rules. Each change creates a new object. */
export interface HistoryRules extends Omit<HistoryUse, 'patterns'> {
  readonly patterns: ReadonlyMap<string, CallPattern>
  /** The kept facts: the keys of the patterns, and `ORIGINS_KEPT` if rules read origins. */
  readonly keeps: ReadonlySet<string>
  /** Returns the patterns that match a tool. Computed once for each tool. */
  of(tool: Tool): readonly CallPattern[]
}

export const ORIGINS_KEPT = 'origins'

/** The most patterns of all policies since the gate was created. Beyond it, the oldest are dropped. */
const MAX_PATTERNS = 500

/** Returns rules that also keep what other policies read; the same object if nothing is new. */
export function withUse(before: HistoryRules | undefined, use: HistoryUse): HistoryRules | undefined {
  if (!use.readsRun && !use.readsOrigin) return before
  if (before && isCovered(before, use)) return before
  const patterns = new Map(before?.patterns)
  for (const pattern of use.patterns) {
    patterns.delete(pattern.key)
    patterns.set(pattern.key, pattern)
  }
  for (const key of patterns.keys()) if (patterns.size > MAX_PATTERNS) patterns.delete(key)
  return createRules({
    readsRun: use.readsRun || (before?.readsRun ?? false),
    readsOrigin: use.readsOrigin || (before?.readsOrigin ?? false),
    labels: [...new Set([...(before?.labels ?? []), ...use.labels])].toSorted(),
    patterns,
  })
}

function isCovered(rules: HistoryRules, use: HistoryUse): boolean {
  return (
    (rules.readsRun || !use.readsRun) &&
    (rules.readsOrigin || !use.readsOrigin) &&
    use.labels.every((label) => rules.labels.includes(label)) &&
    use.patterns.every(({ key }) => rules.patterns.has(key))
  )
}

function createRules(parts: Omit<HistoryRules, 'keeps' | 'of'>): HistoryRules {
  const known = new WeakMap<Tool, readonly CallPattern[]>()
  return {
    ...parts,
    keeps: new Set([...parts.patterns.keys(), ...(parts.readsOrigin ? [ORIGINS_KEPT] : [])]),
    of(tool) {
      let patterns = known.get(tool)
      if (!patterns) known.set(tool, (patterns = patternsOf(tool, parts.patterns.values())))
      return patterns
    },
  }
}

/** A tool that only claims a hint may match `began`, but not `called`. */
function patternsOf(tool: Tool, patterns: Iterable<CallPattern>): readonly CallPattern[] {
  return [...patterns].filter(({ event, selector }) =>
    matchesSelector(selector, tool, event === 'began' ? 'possible' : 'certain'),
  )
}

/** Returns the hash of a call for a pattern; `undefined` if a field is absent, because absent fields equal nothing. */
export function hashOfTuple(pattern: CallPattern, values: readonly unknown[]): string | undefined {
  if (values.includes(undefined)) return undefined
  try {
    return hashOf(values.reduce((text: string, value) => `${text},${canonicalize(value)}`, headOf(pattern)))
  } catch {
    return undefined
  }
}

/** Returns `["<key>"`, which the canonical JSON of the values and a `]` complete. */
function headOf(pattern: CallPattern): string {
  let head = heads.get(pattern)
  if (head === undefined) heads.set(pattern, (head = canonicalize([pattern.key]).slice(0, -1)))
  return head
}

const heads = new WeakMap<CallPattern, string>()

/** Cached, because tuples are stored once and read often. Longer ones are hashed each time. */
function hashOf(open: string): string {
  if (open.length > MAX_KNOWN_CHARS) return sha256Hex(`${open}]`)
  let hash = known.get(open)
  if (hash === undefined) known.set(open, (hash = sha256Hex(`${open}]`)))
  return hash
}

const MAX_KNOWN_CHARS = 512
const known = createBoundedCache<string, string>(500)

/** Returns the values of a pattern's fields in a call. */
export function valuesOf({ fields }: CallPattern, parts: { readonly input: unknown; readonly output: unknown }) {
  return fields.map((field) => {
    const [first, ...path] = field.split('.')
    let value: unknown = first === 'input' ? parts.input : first === 'output' ? parts.output : undefined
    for (const key of path) value = ownField(value, key)
    return value
  })
}

function ownField(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
    return undefined
  return (value as Readonly<Record<string, unknown>>)[key]
}

import { callerParts } from '../caller.ts'
import type { Caller } from '../caller.ts'
import { ConfigError } from '../errors.ts'
import type { LimitUse } from '../ports.ts'
import { type Bits, bitsWhere, hasBit } from '../tools/bits.ts'
import { type GroupSelectors, matchesSelector, parseSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'

/** At most `max` calls in any window of `windowMs`, for each tenant, tool, chat and user. */
export interface RateLimit {
  /** A selector. `*` gives each tool a bucket of its own. */
  readonly match: string
  /** 1 to 1,000,000. */
  readonly max: number
  /** 1 ms to 31 days. */
  readonly windowMs: number
  /** What the limit counts apart. Default: all of them. */
  readonly per?: readonly LimitPart[]
}

export const LIMIT_PARTS = ['tenant', 'tool', 'chat', 'user'] as const
export type LimitPart = (typeof LIMIT_PARTS)[number]

const MAX_USES = 1_000_000
const MAX_WINDOW_MS = 31 * 24 * 60 * 60 * 1000

export interface ParsedLimit {
  readonly selector: Selector
  readonly max: number
  readonly windowMs: number
  readonly per: readonly LimitPart[]
  /** As people write it: `20/60`. */
  readonly label: string
}

/**
 * Gives rate limits checked: `web_search:10/60` is ten calls in any 60 seconds.
 *
 * @throws {ConfigError} naming the entry that cannot be read
 */
export function parseLimits(
  limits: LimitInput | undefined,
  groups: GroupSelectors,
  path = 'limits',
): readonly ParsedLimit[] {
  const list = limits === undefined ? [] : typeof limits === 'string' ? splitLimits(limits) : limits
  if (!Array.isArray(list)) throw new ConfigError(path, 'must be a list of limits')
  return list.map((limit: string | RateLimit, i) => parseLimit(`${path}[${i}]`, limit, groups))
}

/** Gives the entries of a text with commas between them. */
export function splitLimits(text: string): readonly string[] {
  return text.split(',').map((entry) => entry.trim())
}

/** `web_search:10/60,*:100/60`, or a list of such texts or of objects. */
export type LimitInput = string | readonly (string | RateLimit)[]

function parseLimit(path: string, written: string | RateLimit, groups: GroupSelectors): ParsedLimit {
  const {
    match,
    max,
    windowMs,
    per = LIMIT_PARTS,
  } = typeof written === 'string' ? readText(path, written) : checkKeys(path, written)
  if (!Number.isSafeInteger(max) || max < 1 || max > MAX_USES)
    throw new ConfigError(path, `${max} is not a count of 1 to ${MAX_USES}`)
  if (!(typeof windowMs === 'number' && windowMs >= 1 && windowMs <= MAX_WINDOW_MS))
    throw new ConfigError(path, 'the window must be 1 ms to 31 days long')
  if (!Array.isArray(per)) throw new ConfigError(path, `"per" must be a list of ${LIMIT_PARTS.join(', ')}`)
  const unknown = per.find((part) => !LIMIT_PARTS.includes(part))
  if (unknown !== undefined)
    throw new ConfigError(path, `a limit cannot count per "${unknown}"; the parts are ${LIMIT_PARTS.join(', ')}`)
  try {
    return { selector: parseSelector(match, groups), max, windowMs, per, label: `${max}/${windowMs / 1000}` }
  } catch (cause) {
    throw new ConfigError(path, (cause as Error).message, { code: 'selector_invalid', cause })
  }
}

const LIMIT_KEYS: ReadonlySet<string> = new Set(['match', 'max', 'windowMs', 'per'])

/** A misspelt key would be a limit that counts other than it says. */
function checkKeys(path: string, written: RateLimit): RateLimit {
  if (typeof written !== 'object' || written === null || Array.isArray(written))
    throw new ConfigError(path, 'must be a text as "web_search:10/60", or an object')
  const unknown = Object.keys(written).find((key) => !LIMIT_KEYS.has(key))
  if (unknown !== undefined)
    throw new ConfigError(`${path}.${unknown}`, `unknown key; the keys are ${[...LIMIT_KEYS].join(', ')}`)
  return written
}

function readText(path: string, text: string): RateLimit {
  const [, match, max, seconds] = /^(.+):(\d{1,9})\/(\d{1,9})$/.exec(text) ?? []
  if (match === undefined)
    throw new ConfigError(path, `${JSON.stringify(text)} must read selector:uses/seconds, as "web_search:10/60"`)
  return { match, max: Number(max), windowMs: Number(seconds) * 1000 }
}

/** Limits over one snapshot. */
export interface LimitIndex {
  readonly limits: readonly { readonly limit: ParsedLimit; readonly bits: Bits }[]
}

export function indexLimits(limits: readonly ParsedLimit[], snapshot: Toolset): LimitIndex {
  return {
    limits: limits.map((limit) => ({
      limit,
      bits: bitsWhere(snapshot.size, (i) => matchesSelector(limit.selector, snapshot.tools[i] as Tool, 'possible')),
    })),
  }
}

/** A use of one limit, with the words for a refusal. */
export interface LimitUseOf extends LimitUse {
  readonly label: string
  readonly rule: string
}

/** Gives what one call of the tool at an index uses: every limit that names it, to be taken together. */
export function usesOf({ limits }: LimitIndex, index: number, tool: Tool, caller: Caller): readonly LimitUseOf[] {
  return limits.flatMap(({ limit, bits }, position) => {
    if (!hasBit(bits, index)) return []
    const { max, windowMs, per, label, selector } = limit
    return [{ key: limitKey(position, per, tool, caller), max, windowMs, label, rule: selector.text }]
  })
}

/** Parts are length-prefixed and missing ones explicit, so that no two callers can share a key by their spelling. */
function limitKey(position: number, per: readonly LimitPart[], tool: Tool, caller: Caller): string {
  const parts = { ...callerParts(caller), tool: tool.id }
  return per.reduce((key, part) => `${key}|${part}${lengthPrefixed(parts[part])}`, String(position))
}

function lengthPrefixed(text: string | undefined): string {
  return text === undefined ? '-' : `${text.length}:${text}`
}

/** Gives what one call of the tool at an index uses. */
export type UsesOf = (snapshot: Toolset, index: number, caller: Caller) => readonly LimitUseOf[]

const NO_USES: readonly LimitUseOf[] = []

/** Gives the uses of each tool by each caller, computed once while the snapshot stays. */
export function createUses(limits: readonly ParsedLimit[]): UsesOf {
  if (limits.length === 0) return () => NO_USES
  let index:
    | { snapshot: Toolset; limits: LimitIndex; uses: WeakMap<Caller, (readonly LimitUseOf[] | undefined)[]> }
    | undefined
  return (snapshot, at, caller) => {
    if (index?.snapshot !== snapshot) index = { snapshot, limits: indexLimits(limits, snapshot), uses: new WeakMap() }
    let uses = index.uses.get(caller)
    if (!uses) index.uses.set(caller, (uses = []))
    return (uses[at] ??= usesOf(index.limits, at, snapshot.tools[at] as Tool, caller))
  }
}

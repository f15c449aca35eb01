import { callerParts, type Caller } from '../ports/caller.ts'
import { checkShape, ConfigError, shapeOf } from '@toolgate/values'
import {
  type GroupSelectors,
  matchesSelector,
  parseSelector,
  type Selector,
  checkEntry,
  splitEntries,
} from '../tools/selector.ts'
import { countedAs } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { ENVIRONMENT_OPTIONS, type EnvironmentOptions, readVariable } from '../policy/environment.ts'
import { checkVariables, type Environment } from '../policy/environment-names.ts'
import { markWrittenIn, writtenIn } from '../policy/written-in.ts'
import { parseGroups } from '../tools/groups.ts'
import { type CostFields, type Costing, type LimitUseOf, parseCosting } from './costs.ts'
import { labelOf, type LimitWords, type ParsedWords, parseWords } from './limit-words.ts'
import { readOwnJson } from '@toolgate/values/json'

/** At most `max` calls in any window of `windowMs`: for each tenant, tool, chat and user, unless `per` says otherwise. */
export interface RateLimit extends CostFields, LimitWords {
  /** A selector. `*` counts each tool separately. */
  readonly match: string
  /** 1 to 1,000,000. */
  readonly max: number
  /** 1 ms to 31 days. */
  readonly windowMs: number
  /** The fields that are counted separately. Default: tenant, tool, chat and user. Required with a `cost`. */
  readonly per?: readonly LimitPart[] | undefined
}

/** A limit in the shape that chat bots keep in their environment, an alternative to `match` and `windowMs`. */
export interface ToolRateLimit extends LimitWords {
  /** A selector. */
  readonly tool: string
  readonly max: number
  readonly windowSeconds: number
  readonly per?: readonly LimitPart[] | undefined
}

/** `actor`: who acts for the user. `client`: the OAuth client. */
export const LIMIT_PARTS = ['tenant', 'tool', 'chat', 'user', 'actor', 'client'] as const
/** Leaves out `actor` and `client`, because a user could get more by using several of them. */
const DEFAULT_PARTS: readonly LimitPart[] = ['tenant', 'tool', 'chat', 'user']
export type LimitPart = (typeof LIMIT_PARTS)[number]

const MAX_USES = 1_000_000
const MAX_WINDOW_MS = 31 * 24 * 60 * 60 * 1000

export interface ParsedLimit {
  /** The path of the limit, such as `limits[0]` or `TOOL_RATE_LIMITS[0]`. */
  readonly path: string
  readonly selector: Selector
  readonly max: number
  readonly windowMs: number
  readonly per: readonly LimitPart[]
  /** The limit as refusals name it: `20/60`, or `500.00 EUR in 24 hours`. */
  readonly label: string
  readonly words?: ParsedWords | undefined
  /** Absent if each call takes 1. */
  readonly costing?: Costing | undefined
}

/**
 * Checks rate limits and returns them: `web_search:10/60` is ten calls in any 60 seconds.
 *
 * @throws {ConfigError} naming the invalid entry
 */
export function parseLimits(
  limits: LimitInput | undefined,
  groups: GroupSelectors,
  path = 'limits',
): readonly ParsedLimit[] {
  const list = limits === undefined ? [] : typeof limits === 'string' ? splitEntries(limits) : limits
  if (!Array.isArray(list)) throw new ConfigError(path, 'must be a list of limits')
  const written = writtenIn(list) ?? path
  return list.map((limit: WrittenLimit, i) => parseLimit(`${written}[${i}]`, limit, groups))
}

/**
 * Parses limits from a text: entries separated by commas, or a JSON list of entries and objects.
 *
 * @throws {ConfigError} for text that looks like JSON and is not valid JSON
 */
export function readLimits(text: string, path: string): readonly WrittenLimit[] {
  if (!/^\s*[[{]/.test(text)) return splitEntries(text)
  try {
    return readOwnJson(text) as readonly WrittenLimit[]
  } catch (cause) {
    throw new ConfigError(path, `is no JSON: ${(cause as Error).message}`, { cause })
  }
}

/** `web_search:10/60,*:100/60`, or a list of such texts or of objects. */
export type LimitInput = string | readonly WrittenLimit[]

/** `web_search:10/60`, or an object in one of the two shapes. */
export type WrittenLimit = string | RateLimit | ToolRateLimit

function parseLimit(path: string, written: WrittenLimit, groups: GroupSelectors): ParsedLimit {
  const rule = typeof written === 'string' ? readText(path, written) : toRateLimit(path, written)
  const { match, max, windowMs, per = DEFAULT_PARTS } = rule
  const costing = parseCosting(path, rule)
  const words = parseWords(path, rule, costing !== undefined)
  const most = costing ? Number.MAX_SAFE_INTEGER : MAX_USES
  if (!Number.isSafeInteger(max) || max < 1 || max > most)
    throw new ConfigError(path, `${max} is not a count of 1 to ${most}`)
  if (!(typeof windowMs === 'number' && windowMs >= 1 && windowMs <= MAX_WINDOW_MS))
    throw new ConfigError(path, 'the window must be 1 ms to 31 days long')
  if (!Array.isArray(per)) throw new ConfigError(path, `"per" must be a list of ${LIMIT_PARTS.join(', ')}`)
  const unknown = per.find((part) => !LIMIT_PARTS.includes(part))
  if (unknown !== undefined)
    throw new ConfigError(path, `a limit cannot count per "${unknown}"; the parts are ${LIMIT_PARTS.join(', ')}`)
  return {
    path,
    selector: selectorOf(path, match, groups),
    max,
    windowMs,
    per: LIMIT_PARTS.filter((part) => per.includes(part)),
    label: labelOf(max, windowMs, words),
    ...(words ? { words } : {}),
    ...(costing ? { costing } : {}),
  }
}

function selectorOf(path: string, match: string, groups: GroupSelectors): Selector {
  try {
    return parseSelector(match, groups)
  } catch (cause) {
    throw new ConfigError(path, (cause as Error).message, { code: 'selector_invalid', cause })
  }
}

type EitherShape = RateLimit & ToolRateLimit

const LIMIT_SHAPE = shapeOf<EitherShape>(
  {
    match: true,
    tool: true,
    max: true,
    windowMs: true,
    windowSeconds: true,
    per: true,
    cost: true,
    maxCost: true,
    settle: true,
    refund: true,
    unit: true,
    message: true,
  },
  'key',
)

/** Accepts both shapes, and the output of `parseToolRateLimits`, which has the fields of both. */
function toRateLimit(path: string, written: RateLimit | ToolRateLimit): RateLimit {
  if (typeof written !== 'object' || written === null || Array.isArray(written))
    throw new ConfigError(path, 'must be a text as "web_search:10/60", or an object')
  checkShape(path, written, LIMIT_SHAPE)
  const { tool, windowSeconds, ...rule } = written as Partial<EitherShape>
  const { match, windowMs } = rule
  if (match !== undefined && tool !== undefined && match !== tool)
    throw new ConfigError(`${path}.tool`, 'differs from "match", which means the same')
  if (windowMs !== undefined && windowSeconds !== undefined && windowMs / 1000 !== windowSeconds)
    throw new ConfigError(`${path}.windowSeconds`, 'differs from "windowMs", which means the same')
  const ms = windowMs ?? (typeof windowSeconds === 'number' ? windowSeconds * 1000 : windowSeconds)
  // `parseLimit` rejects missing fields and wrong types.
  return { ...rule, match: match ?? tool, windowMs: ms } as RateLimit
}

function readText(path: string, text: string): RateLimit {
  const [, match, max, seconds] = /^(.+):(\d{1,9})\/(\d{1,9})$/.exec(text) ?? []
  if (match === undefined)
    throw new ConfigError(path, `${JSON.stringify(text)} must read selector:uses/seconds, as "web_search:10/60"`)
  checkEntry(path, text, match)
  return { match, max: Number(max), windowMs: Number(seconds) * 1000 }
}

/** Who a call is counted for. Holds authenticated values only; an unknown value is counted separately. */
type CountedParts = Readonly<Record<LimitPart, string | undefined>>

/** A limit that matches a tool, with the prefix of its keys. */
interface MatchingLimit extends ParsedLimit {
  readonly bucket: string
}

/** Returns the uses of one call of a tool: one for each limit that matches it, to be taken together. */
export type UsesOfTool = (tool: Tool, parts: CountedParts) => readonly LimitUseOf[]

/** Matches limits once for each tool, so that limits for other tools do not slow a call down. */
export function createUsesOfTool(limits: readonly ParsedLimit[]): UsesOfTool {
  const known = new WeakMap<Tool, readonly MatchingLimit[]>()
  return (tool, parts) => {
    let matching = known.get(tool)
    if (!matching) known.set(tool, (matching = matchingLimits(limits, tool)))
    return matching.map((limit) => ({
      key: keyOf(limit, parts),
      max: limit.max,
      windowMs: limit.windowMs,
      label: limit.label,
      rule: limit.selector.text,
      ...(limit.words ? { words: limit.words } : {}),
      ...(limit.costing ? { costing: limit.costing, holder: holderOf(limit, parts) } : {}),
    }))
  }
}

function holderOf({ per }: MatchingLimit, parts: CountedParts): Readonly<Record<string, string>> {
  return Object.fromEntries(per.flatMap((part) => (parts[part] === undefined ? [] : [[part, parts[part]]])))
}

/** If several limits count the same uses, only the smallest matters. */
function matchingLimits(limits: readonly ParsedLimit[], tool: Tool): readonly MatchingLimit[] {
  const byBucket = new Map<string, MatchingLimit>()
  for (const limit of limits) {
    if (!matchesSelector(limit.selector, tool, 'possible')) continue
    const bucket = bucketOf(limit)
    const other = byBucket.get(bucket)
    if (!other || limit.max < other.max) byBucket.set(bucket, { ...limit, bucket })
  }
  return [...byBucket.values()]
}

/**
 * Returns the bucket of a limit: its selector, its window, the fields that it counts separately, and its cost.
 *
 * The bucket is the same in every process, wherever the limit stands in its list. `max` is not part of the bucket. While
 * replicas change `max` one after the other, the counts continue, and no caller gets both amounts.
 */
function bucketOf({ selector, windowMs, per, costing }: ParsedLimit): string {
  const apart = per.join('+')
  const bucket = `${lengthPrefixed(nameOf(selector))}/${windowMs}${apart === DEFAULT_APART ? '' : `/${apart}`}`
  return costing ? `${bucket}/cost${lengthPrefixed(costing.cost.text)}` : bucket
}

const DEFAULT_APART = DEFAULT_PARTS.join('+')

/** A limit that is written with an alias shares its count with limits that use the id. */
function nameOf(selector: Selector): string {
  return selector.kind === 'id' ? (selector.target ?? selector.text) : selector.text
}

/** Parts have a length prefix and missing parts are marked, so that two callers never share a key. */
function keyOf({ bucket, per }: MatchingLimit, parts: CountedParts): string {
  let key = bucket
  for (const part of per) key += `|${lengthPrefixed(parts[part])}`
  return key
}

function lengthPrefixed(text: string | undefined): string {
  return text === undefined ? '-' : `${text.length}:${text}`
}

/** Returns the uses of one call of the tool at an index. */
export type UsesOf = (snapshot: Toolset, index: number, caller: Caller) => readonly LimitUseOf[]

const NO_USES: readonly LimitUseOf[] = []

/** Returns the uses of each tool by each caller, computed once while the snapshot stays. */
export function createUses(limits: readonly ParsedLimit[]): UsesOf {
  if (limits.length === 0) return () => NO_USES
  const usesOfTool = createUsesOfTool(limits)
  const known = new WeakMap<Toolset, WeakMap<Caller, Map<number, readonly LimitUseOf[]>>>()
  return (snapshot, at, caller) => {
    let byCaller = known.get(snapshot)
    if (!byCaller) known.set(snapshot, (byCaller = new WeakMap()))
    let byTool = byCaller.get(caller)
    if (!byTool) byCaller.set(caller, (byTool = new Map()))
    let uses = byTool.get(at)
    if (!uses) {
      const tool = snapshot.tools[at] as Tool
      byTool.set(at, (uses = usesOfTool(tool, { ...callerParts(caller), tool: countedAs(tool) })))
    }
    return uses
  }
}

const VARIABLE = 'TOOL_RATE_LIMITS'

/**
 * Returns the rate limits in `TOOL_RATE_LIMITS`: `web_search:10/60,*:100/60`, or a JSON list of such texts and of objects
 * like `{"tool":"web_search","max":10,"windowSeconds":60}` or `{"match":"web_search","max":10,"windowMs":60000}`. A blank
 * value counts as unset.
 *
 * @throws {ConfigError} naming the invalid entry
 * @example
 * createGate({ tools, limits: ['*:100/60', ...limitsFromEnv(process.env)] })
 */
export function limitsFromEnv(env: Environment, options: EnvironmentOptions = {}): readonly WrittenLimit[] {
  checkShape('limitsFromEnv', options, ENVIRONMENT_OPTIONS)
  const { groups } = options
  checkVariables(env)
  const text = readVariable(VARIABLE, env)
  if (text === undefined) return []
  const list = readLimits(text, VARIABLE)
  parseLimits(list, parseGroups(groups).selectors, VARIABLE)
  return markWrittenIn(list, VARIABLE)
}

import { writtenWords } from './limit-words.ts'
import { callerParts } from '../ports/caller.ts'
import { checkShape, ConfigError, nearestNames, shapeOf, ToolgateError, UnknownToolError } from '@toolgate/values'
import { systemClock } from '../memory/clock.ts'
import { memoryCounters, type SyncCounterStore } from '../memory/counters.ts'
import type { Clock, CounterStore, LimitAnswer, MaybePromise } from '../ports/ports.ts'
import { type Group, parseGroups } from '../tools/groups.ts'
import type { GroupSelectors, Selector } from '../tools/selector.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { LimitUseOf } from './costs.ts'
import {
  createUsesOfTool,
  type LimitInput,
  type ParsedLimit,
  parseLimits,
  type RateLimit,
  readLimits,
  type ToolRateLimit,
  type UsesOfTool,
  type WrittenLimit,
} from './limits.ts'

/** The answer of a limiter. */
interface RateLimitAnswer {
  readonly allowed: boolean
  /** Calls left after this one, by the limit with the fewest; `Infinity` if no limit matches the tool. */
  readonly remaining: number
  /** Milliseconds until the call would be allowed; 0 when it is. See {@link retryAfterSeconds}. */
  readonly resetMs: number
}

/** Counts calls of tools. */
export interface ToolRateLimiter<Answer = RateLimitAnswer> {
  /**
   * Takes one call of every limit that matches the tool, or none: a refused call takes nothing.
   *
   * @throws {UnknownToolError} for an unknown id, if the limiter was given its tools
   * @throws {ToolgateError} `caller_invalid` for a chat or a user that is not a string
   */
  check(tool: string | Tool, chatId?: string, userId?: string): Answer
}

interface ToolRateLimiterOptions<Counters extends CounterStore = SyncCounterStore> {
  /** The groups for `group:` selectors. */
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
  /** The tools for `tag:`, `category:` and `hint:` selectors. */
  readonly tools?: Iterable<Tool>
  readonly clock?: Pick<Clock, 'monotonicMs'>
  /** Default: counters in memory. With asynchronous counters, `check` is asynchronous. */
  readonly counters?: Counters
}

/**
 * Checks rate limits and returns them as data, from `web_search:10/60,*:100/60`, from a JSON list as `limitsFromEnv` reads
 * it, or from a list of objects. Each result has the fields of both shapes: `tool` and `windowSeconds`, `match` and
 * `windowMs`. Blank text is an empty list. {@link createToolRateLimiter} checks the groups.
 *
 * @throws {ConfigError} naming the invalid entry
 * @example
 * createToolRateLimiter(parseToolRateLimits('web_search:10/60'))
 */
export function parseToolRateLimits(input: LimitInput | undefined): readonly (RateLimit & ToolRateLimit)[] {
  const list = typeof input === 'string' ? (input.trim() === '' ? [] : readLimits(input, 'limits')) : input
  const limits = withoutCosts(parseLimits(list, groupsNamedIn(list)))
  return limits.map(({ selector: { text }, max, windowMs, per, words }) => ({
    tool: text,
    max,
    windowSeconds: windowMs / 1000,
    match: text,
    windowMs,
    per,
    ...writtenWords(words),
  }))
}

/** A standalone limiter sees no inputs, so it cannot compute costs. */
function withoutCosts(limits: readonly ParsedLimit[]): readonly ParsedLimit[] {
  const costly = limits.findIndex(({ costing }) => costing)
  if (costly !== -1)
    throw new ConfigError(`limits[${costly}].cost`, 'is only for a gate, which sees the input of a call')
  return limits
}

/** Accepts every group name. */
function groupsNamedIn(list: unknown): GroupSelectors {
  const names = (Array.isArray(list) ? list : []).flatMap((entry: WrittenLimit | null) => {
    const [, name] = /^group:([^:]+)/.exec(String(selectorIn(entry))) ?? []
    return name === undefined ? [] : [name]
  })
  return new Map(names.map((name) => [name, []]))
}

function selectorIn(entry: WrittenLimit | null): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  return 'tool' in entry ? entry.tool : entry.match
}

/**
 * Creates a standalone limiter, for a host that decides and runs calls itself. A gate has its own.
 *
 * The limiter is exact: never more than `max` calls in any window of that length, and a slot is free again exactly at its
 * edge.
 *
 * @throws {ConfigError} naming the invalid limit, including a selector that needs groups or tools which were not given
 * @example
 * const limiter = createToolRateLimiter('web_search:10/60')
 * const { allowed, resetMs } = limiter.check('web_search', chatId, userId)
 */
export function createToolRateLimiter(rules: LimitInput, options?: ToolRateLimiterOptions): ToolRateLimiter
export function createToolRateLimiter(
  rules: LimitInput,
  options: ToolRateLimiterOptions<CounterStore>,
): ToolRateLimiter<MaybePromise<RateLimitAnswer>>
export function createToolRateLimiter(
  rules: LimitInput,
  options: ToolRateLimiterOptions<CounterStore> = {},
): ToolRateLimiter<MaybePromise<RateLimitAnswer>> {
  checkShape('createToolRateLimiter', options, OPTIONS)
  const { groups, tools, clock = systemClock, counters = memoryCounters({ clock }) } = options
  const limits = withoutCosts(
    parseLimits(typeof rules === 'string' ? readLimits(rules, 'limits') : rules, parseGroups(groups).selectors),
  )
  const needy = limits.findIndex(({ selector }) => looksAtTool(selector))
  if (!tools && needy !== -1)
    throw new ConfigError(
      `limits[${needy}]`,
      `"${limits[needy]?.selector.text}" is about what tools are marked with: give the limiter its tools`,
    )
  const usesOf = rememberUses(createUsesOfTool(limits))
  const find = tools ? finderOf(tools) : createNamedTools()
  return {
    check(tool, chatId, userId) {
      checkText('chatId', chatId)
      checkText('userId', userId)
      const found = typeof tool === 'string' ? find(tool) : tool
      const answer = counters.take(usesOf(found, chatId, userId))
      return answer instanceof Promise ? answer.then(toAnswer) : toAnswer(answer)
    },
  }
}

const OPTIONS = shapeOf<ToolRateLimiterOptions<CounterStore>>({
  groups: true,
  tools: true,
  clock: true,
  counters: true,
})
const MAX_REMEMBERED = 10_000

/** Making a key costs more than counting it, so the keys of frequent callers are cached. */
function rememberUses(
  usesOf: UsesOfTool,
): (tool: Tool, chat: string | undefined, user: string | undefined) => readonly LimitUseOf[] {
  type ByUser = Map<string | undefined, readonly LimitUseOf[]>
  const known = new Map<Tool, Map<string | undefined, ByUser>>()
  let count = 0
  return (tool, chat, user) => {
    let uses = known.get(tool)?.get(chat)?.get(user)
    if (uses) return uses
    if (count++ >= MAX_REMEMBERED) {
      known.clear()
      count = 1
    }
    uses = usesOf(tool, { ...callerParts({ user }), chat, tool: tool.id })
    const byChat = known.get(tool) ?? new Map<string | undefined, ByUser>()
    const byUser: ByUser = byChat.get(chat) ?? new Map()
    known.set(tool, byChat.set(chat, byUser.set(user, uses)))
    return uses
  }
}

function toAnswer({ allowed, remaining, resetMs }: LimitAnswer): RateLimitAnswer {
  // Only `true` counts, because a store may return invalid answers.
  return { allowed: (allowed as unknown) === true, remaining, resetMs }
}

function checkText(what: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'string')
    throw new ToolgateError('caller_invalid', `${what} must be a string, where there is one`)
}

/** Returns whether matching the selector needs more than a tool's id. */
function looksAtTool(selector: Selector): boolean {
  if (selector.kind === 'group') return selector.members.some(looksAtTool)
  return selector.kind === 'tag' || selector.kind === 'category' || selector.kind === 'hint'
}

function finderOf(tools: Iterable<Tool>): (id: string) => Tool {
  const byId = new Map(Array.from(tools, (tool) => [tool.id, tool]))
  return (id) => {
    const tool = byId.get(id)
    if (!tool) throw new UnknownToolError(id, nearestNames(id, [...byId.keys()], 3))
    return tool
  }
}

const MAX_NAMED = 10_000
const NAMELESS = defineTool({ name: 'nameless' })

/** Returns tools that have only an id. A client may have made the ids up. */
function createNamedTools(): (id: string) => Tool {
  const known = new Map<string, Tool>()
  return (id) => {
    let tool = known.get(id)
    if (tool) return tool
    if (known.size >= MAX_NAMED) known.clear()
    const colon = id.indexOf(':')
    const namespace = colon === -1 ? undefined : id.slice(0, colon)
    known.set(id, (tool = { ...NAMELESS, id, namespace, name: id.slice(colon + 1) }))
    return tool
  }
}

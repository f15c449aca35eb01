import { ConfigError, defineTool } from '@toolgate/core'
import { isObject } from '@toolgate/core/internal'
import { describeExcess, findMembers, measureJson } from '../json-text.ts'
import { nextTurn } from '../next-turn.ts'
import type { Connection } from './connection.ts'
import { clip, JsonText } from './json-rpc.ts'
import { LIMITS } from './limits.ts'
import { findParamHeaders, type ParamHeader } from './param-headers.ts'
import { completeResult } from './protocol.ts'
import { type McpTool, UpstreamError, type UpstreamState } from './upstream.ts'

export interface ToolList {
  /** In the server's order, without duplicate names. */
  readonly tools: readonly McpTool[]
  readonly rejected: UpstreamState['rejected']
  /** By tool, for tools that want any. */
  readonly paramHeaders: ReadonlyMap<string, readonly ParamHeader[]>
  /** How long the server says the list stays fresh. */
  readonly ttlMs: number | undefined
  /** Equal lists have equal text. */
  readonly text: string
  /** Equal tools have equal texts. */
  readonly texts: ReadonlyMap<McpTool, string>
}

const EMPTY: ToolList = {
  tools: [],
  rejected: [],
  paramHeaders: new Map(),
  ttlMs: undefined,
  text: '[]',
  texts: new Map(),
}

/**
 * Reads all pages of a server's `tools/list`, some tools in each turn of the event loop. Invalid tools are rejected with
 * a reason and do not affect the others.
 *
 * @throws {UpstreamError} for a list that never ends, is too large or is not a list
 */
export async function fetchTools(
  connection: Connection,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ToolList> {
  if (!isObject(connection.capabilities['tools'])) return EMPTY
  const deadlineMs = performance.now() + options.timeoutMs
  const cursors = new Set<string>()
  const sieve = new Sieve(connection.era === 'modern')
  let ttlMs: number | undefined
  for (let cursor: string | undefined; ; cursors.add(cursor)) {
    const timeoutMs = Math.max(1, deadlineMs - performance.now())
    const page = await connection.request('tools/list', cursor === undefined ? {} : { cursor }, {
      ...options,
      timeoutMs,
    })
    const { tools, nextCursor, ttlMs: pageTtlMs } = completeResult(connection.era, page)
    if (!Array.isArray(tools)) throw new UpstreamError('upstream_protocol', 'answered tools/list without a list')
    checkSize(sieve.count + tools.length, sieve.chars, cursors.size)
    for (const slice of slicesOf(tools, (tool) => (tool instanceof JsonText ? tool.text.length : 0))) {
      for (const tool of slice) sieve.add(tool)
      await nextTurn()
    }
    if (typeof pageTtlMs === 'number' && pageTtlMs >= 0) ttlMs = Math.min(ttlMs ?? pageTtlMs, pageTtlMs)
    checkSize(sieve.count, sieve.chars, cursors.size)
    if (typeof nextCursor !== 'string' || nextCursor === '') break
    if (cursors.has(nextCursor))
      throw new UpstreamError('upstream_protocol', 'lists its tools in a circle: a cursor came twice')
    cursor = nextCursor
  }
  return sieve.toList(ttlMs)
}

function checkSize(tools: number, bytes: number, pages: number): void {
  const beyond =
    tools > LIMITS.tools
      ? `more than ${LIMITS.tools} tools`
      : bytes > LIMITS.listBytes
        ? `tools of more than ${LIMITS.listBytes / 1024 / 1024} MiB`
        : pages >= LIMITS.listPages
          ? `more than ${LIMITS.listPages} pages of tools`
          : undefined
  if (beyond !== undefined) throw new UpstreamError('upstream_too_large', `lists ${beyond}`)
}

/** Collects the valid tools, and the others with the reason. */
class Sieve {
  readonly #isModern: boolean
  readonly #tools = new Map<string, McpTool>()
  readonly #paramHeaders = new Map<string, readonly ParamHeader[]>()
  readonly #rejected: { tool: string; reason: string }[] = []
  readonly #listed: string[] = []
  readonly #texts = new Map<McpTool, string>()
  #chars = 0

  constructor(isModern: boolean) {
    this.#isModern = isModern
  }

  get count(): number {
    return this.#listed.length
  }

  get chars(): number {
    return this.#chars
  }

  add(listed: unknown): void {
    const text = listed instanceof JsonText ? listed.text : JSON.stringify(listed)
    this.#listed.push(text)
    this.#chars += text.length
    const { tool, problem } = readTool(listed, text, this.#isModern)
    if (!tool || this.#tools.has(tool.name)) {
      const reason = problem ?? 'is listed twice; the first counts'
      this.#rejected.push({ tool: nameIn(text) ?? `tools[${this.count - 1}]`, reason })
      return
    }
    this.#tools.set(tool.name, tool)
    this.#texts.set(tool, text)
    const headers = this.#isModern ? findParamHeaders(tool.inputSchema) : []
    if (typeof headers !== 'string' && headers.length > 0) this.#paramHeaders.set(tool.name, headers)
  }

  toList(ttlMs: number | undefined): ToolList {
    return {
      tools: [...this.#tools.values()],
      rejected: this.#rejected,
      paramHeaders: this.#paramHeaders,
      ttlMs,
      text: `[${this.#listed.join()}]`,
      texts: this.#texts,
    }
  }
}

type ReadTool =
  | { readonly tool: McpTool; readonly problem?: undefined }
  | { readonly tool?: undefined; readonly problem: string }

function readTool(listed: unknown, text: string, isModern: boolean): ReadTool {
  if (text.length > LIMITS.toolChars) return { problem: `is larger than ${LIMITS.toolChars} characters` }
  const { excess } = measureJson(text, LIMITS.tool)
  if (excess) return { problem: describeExcess(excess) }
  let tool = listed
  if (listed instanceof JsonText) {
    try {
      tool = JSON.parse(text)
    } catch {
      return { problem: 'is not JSON' }
    }
  }
  const problem = problemOf(tool, isModern)
  return problem === undefined ? { tool: tool as McpTool } : { problem }
}

/** Returns the name of a tool that may be too large to be parsed. */
function nameIn(text: string): string | undefined {
  const span = findMembers(text, ['name']).get('name')
  if (!span) return undefined
  const written = text.slice(span.start, span.end).trim()
  // The longest escape of one character has six.
  const cut = written.slice(0, MAX_SHOWN_NAME * 6)
  try {
    const name: unknown = cut === written ? JSON.parse(cut) : cut.slice(1)
    return typeof name === 'string' && name !== '' ? clip(name, MAX_SHOWN_NAME) : undefined
  } catch {
    return undefined
  }
}

const MAX_SHOWN_NAME = 128

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

function problemOf(tool: unknown, modern: boolean): string | undefined {
  if (!isObject(tool)) return 'is not an object'
  const { name, title, description, inputSchema, outputSchema, annotations, execution } = tool
  if (!isObject(inputSchema)) return 'has no inputSchema that is an object'
  if (inputSchema['type'] !== undefined && inputSchema['type'] !== 'object')
    return 'has an inputSchema that is not for objects'
  if (outputSchema !== undefined && !isObject(outputSchema)) return 'has an outputSchema that is not an object'
  if (!isTextOrAbsent(title)) return 'has a title that is not a string'
  if (!isTextOrAbsent(description)) return 'has a description that is not a string'
  if (annotations !== undefined && !areAnnotations(annotations)) return 'has annotations of the wrong type'
  if (isObject(execution) && execution['taskSupport'] === 'required')
    return 'can only be run as a task, which is not supported'
  if (modern) {
    const headers = findParamHeaders(inputSchema)
    if (typeof headers === 'string') return headers
  }
  return nameProblem(name)
}

/** Applies the catalog's own rules, so that the catalog takes every tool that passes here. */
function nameProblem(name: unknown): string | undefined {
  try {
    defineTool({ name: name as string })
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return clip(error.message.slice(error.path.length).replace(/^: /, ''))
  }
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function areAnnotations(annotations: unknown): boolean {
  if (!isObject(annotations) || !isTextOrAbsent(annotations['title'])) return false
  return HINTS.every((hint) => annotations[hint] === undefined || typeof annotations[hint] === 'boolean')
}

/** Tools that are parsed, compared or announced in one turn of the event loop. */
const SLICE_TOOLS = 200
const SLICE_CHARS = 512 * 1024

/** Splits tools into slices, each short enough for one turn of the event loop. */
export function* slicesOf<Item>(items: readonly Item[], charsOf: (item: Item) => number): Generator<readonly Item[]> {
  let slice: Item[] = []
  let chars = 0
  for (const item of items) {
    slice.push(item)
    chars += charsOf(item)
    if (slice.length < SLICE_TOOLS && chars < SLICE_CHARS) continue
    yield slice
    slice = []
    chars = 0
  }
  if (slice.length > 0) yield slice
}

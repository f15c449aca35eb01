import { type CallContext, ConfigError, defineTool, type Tool, type ToolDefinition } from '@toolgate/core'
import type { Probe } from '@toolgate/core/groups'
import { type Shape, shapeOf } from '@toolgate/core/internal'
import type { Source } from '@toolgate/core/toolset'
import { isPlainObject } from '../shared/mcp-result.ts'
import { withoutHop } from './results.ts'
import { type McpLink, parsePage } from './sdk-client.ts'
import { type Claims, type McpOverlay, parseOverlay, toDefinition } from './overlay.ts'

export interface McpSourceOptions {
  /** Before each tool's name. Give one where there are several servers, whose names could meet. */
  readonly namespace?: string | undefined
  /** What the operator says of the tools, by their names or by globs. */
  readonly overlay?: McpOverlay | undefined
  /** Whether the server's hints count as the operator's own. Otherwise they only tighten. */
  readonly trustHints?: boolean | undefined
}

export const SOURCE_SHAPE: Shape = shapeOf<McpSourceOptions>({ namespace: true, overlay: true, trustHints: true })

/** The tools of an MCP server, for `createGate({ sources })`. */
export interface McpSource extends Source {
  subscribe(listener: () => void): () => void
  /** Reads the list again. Done by itself when the server says that it has changed. Never rejects. */
  refresh(): Promise<void>
  /** Why the list is not known to be today's: it could not be read, or the connection is closed. Its tools stay. */
  readonly failure: Error | undefined
  /** For a conditional group of these tools: whether the list is known to be today's. */
  readonly probe: Probe
  /** Tools that the server lists and that are not offered, with the reason. */
  readonly leftOut: readonly { readonly tool: string; readonly reason: string }[]
  /** Names and globs of the overlay that are none of the tools'. */
  readonly unmatched: readonly string[]
  /** Hears of no more changes. The client stays open: it is its owner's. */
  close(): void
}

/** Gives the source of a server. Rejects where its list cannot be read. */
export async function createMcpSource(
  link: McpLink,
  { namespace, overlay, trustHints = false }: McpSourceOptions,
): Promise<McpSource> {
  const claims: Claims = { namespace, overlay: parseOverlay(overlay), trustHints }
  const serverName = namespace ?? 'mcp'
  const listeners = new Set<() => void>()
  const watchers = new Set<() => void>()
  let isOpen = true
  let failure: Error | undefined
  let list = sift(await fetchAll(link), claims, (name) => createExecute(link, name))
  let reading: Promise<void> | undefined
  let isStale = false

  const fail = (error: Error | undefined) => {
    const isNews = (failure === undefined) !== (error === undefined)
    failure = error
    if (isNews) for (const watcher of watchers) watcher()
  }
  const readOnce = async () => {
    try {
      const listed = await fetchAll(link)
      // A tool that is listed again as it was is the same tool.
      const fresh = sift(listed, claims, (name) => list.executes.get(name) ?? createExecute(link, name))
      if (!isOpen) return
      fail(undefined)
      list = fresh
      for (const listener of listeners) listener()
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  }
  const read = async (): Promise<void> => {
    isStale = false
    await readOnce()
    if (isStale && isOpen) return read()
    reading = undefined
  }
  const refresh = (): Promise<void> => {
    // A change while the list is read may not be in it.
    isStale = true
    return (reading ??= read())
  }
  for (const pattern of list.unmatched)
    warnOnce(`overlay.${pattern}: "${pattern}" names no tool of the server ${serverName}`)
  const unfollow = link.follow({ changed: () => void refresh(), closed: fail })

  return {
    name: serverName,
    // Its list was read before it was made.
    isListed: () => true,
    ...(namespace === undefined ? {} : { namespaces: [namespace] }),
    tools: () => list.tools,
    subscribe: (listener) => subscribeTo(listeners, listener),
    refresh,
    probe: {
      key: `mcp:${serverName}`,
      what: `the server ${serverName}`,
      ask: () =>
        failure === undefined || {
          available: false,
          reason: `the server ${serverName} does not answer`,
          detail: failure.message,
        },
      subscribe: (listener) => subscribeTo(watchers, listener),
    },
    get failure() {
      return failure
    },
    get leftOut() {
      return list.leftOut
    },
    get unmatched() {
      return list.unmatched
    },
    close() {
      isOpen = false
      listeners.clear()
      unfollow()
    },
  }
}

const MAX_WARNED = 1000
const warned = new Set<string>()

/** A host may connect again and again. */
function warnOnce(message: string): void {
  if (warned.has(message) || warned.size >= MAX_WARNED) return
  warned.add(message)
  process.emitWarning(message, { type: 'ToolgateWarning', code: 'selector_unmatched' })
}

function subscribeTo(listeners: Set<() => void>, listener: () => void): () => void {
  const own = () => listener()
  listeners.add(own)
  return () => listeners.delete(own)
}

type Execute = NonNullable<ToolDefinition['execute']>

function createExecute(link: McpLink, name: string): Execute {
  return async (input: unknown, { signal, onProgress, context }: CallContext) => {
    const call = { name, arguments: isPlainObject(input) ? input : {}, signal, onProgress, context }
    const result: unknown = await link.call(call)
    if (!isPlainObject(result)) throw new TypeError('the server answered tools/call without a result')
    return withoutHop(result)
  }
}

const MAX_TOOLS = 10_000
const MAX_PAGES = 1000

async function fetchAll(link: McpLink): Promise<readonly unknown[]> {
  const tools: unknown[] = []
  const cursors = new Set<string>()
  for (let cursor: string | undefined; ; cursors.add(cursor)) {
    const page = parsePage(await link.list(cursor))
    tools.push(...page.tools)
    if (tools.length > MAX_TOOLS) throw new RangeError(`the server lists more than ${MAX_TOOLS} tools`)
    if (cursors.size >= MAX_PAGES) throw new RangeError(`the server lists more than ${MAX_PAGES} pages of tools`)
    if (page.nextCursor === undefined) return tools
    if (cursors.has(page.nextCursor))
      throw new RangeError('the server lists its tools in a circle: a cursor came twice')
    cursor = page.nextCursor
  }
}

interface Sifted {
  readonly tools: readonly Tool[]
  /** By the name of the tool. */
  readonly executes: ReadonlyMap<string, Execute>
  readonly leftOut: McpSource['leftOut']
  readonly unmatched: readonly string[]
}

/** One tool that cannot be offered takes none of the others with it. */
function sift(listed: readonly unknown[], claims: Claims, executeOf: (name: string) => Execute): Sifted {
  const tools = new Map<string, Tool>()
  const executes = new Map<string, Execute>()
  const leftOut: { tool: string; reason: string }[] = []
  for (const [i, one] of listed.entries()) {
    try {
      const definition = toDefinition(one, claims)
      const execute = executeOf(definition.name)
      const tool = defineTool({ ...definition, execute })
      if (tools.has(tool.id)) throw new ConfigError('tool', 'is listed twice; the first counts')
      tools.set(tool.id, tool)
      executes.set(tool.name, execute)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      leftOut.push({ tool: nameOf(one, i), reason: error.problem })
    }
  }
  const names = [...tools.values()].map(({ name }) => name)
  const unmatched = claims.overlay.flatMap(([pattern, matches]) => (names.some(matches) ? [] : [pattern]))
  return { tools: [...tools.values()], executes, leftOut, unmatched }
}

const MAX_NAME_LENGTH = 128

function nameOf(listed: unknown, index: number): string {
  const name = isPlainObject(listed) ? listed['name'] : undefined
  return typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME_LENGTH).toWellFormed() : `tools[${index}]`
}

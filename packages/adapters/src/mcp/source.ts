import type { CallContext, Progress, Tool } from '@toolgate/core'
import type { Probe } from '@toolgate/core/groups'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { messageOf, type Shape, shapeOf, toNamedMap } from '@toolgate/values'
import type { InputHandling, ToolOverlay } from '@toolgate/core/tools'
import type { Source } from '@toolgate/core/toolset'
import { type McpResult, ServerTools, withoutHop, withoutNulls } from '@toolgate/mcp'
import { checkOverlayFields } from '../shared/overlay.ts'

/** A source's connection to its server. */
export interface McpLink {
  /** Requests a page of the list of tools. The answer is unchecked. */
  list(cursor: string | undefined): Promise<unknown>
  /**
   * Calls a tool. The answer is unchecked.
   *
   * @throws {RpcError} if the server answers with a JSON-RPC error
   */
  call(call: LinkCall): Promise<unknown>
  /** Subscribes to changes of the list. Returns a function that unsubscribes. */
  follow(listener: LinkListener): () => void
}

export interface LinkCall {
  readonly name: string
  readonly arguments: JsonObject
  readonly signal: AbortSignal
  readonly onProgress: ((progress: Progress) => void) | undefined
  /** The context that the host passed to the call. For an MCP server: the SDK's context of the request. */
  readonly context: unknown
}

export interface LinkListener {
  changed(): void
  /** Called when changes are no longer announced. */
  closed(error: Error): void
}

/** Your declarations about a server's tools, by name or by glob: `{ 'read_*': { tags: ['read'] } }`. */
export type McpOverlay = Readonly<Record<string, ToolOverlay>>

export interface McpSourceOptions {
  /** A prefix for each tool's name. Set it for several servers whose tools may share names. */
  readonly namespace?: string | undefined
  /** Your declarations about the tools, by name or by glob. */
  readonly overlay?: McpOverlay | undefined
  /** Whether the server's hints count like your own declarations. Otherwise they only tighten. */
  readonly trustHints?: boolean | undefined
  /** Decides what happens to inputs that a tool's schema rejects. Default: `checked`. */
  readonly inputs?: InputHandling | undefined
}

export const SOURCE_SHAPE: Shape = shapeOf<McpSourceOptions>({
  namespace: true,
  overlay: true,
  trustHints: true,
  inputs: true,
})

/** The tools of an MCP server, for `createGate({ sources })`. */
export interface McpSource extends Source {
  subscribe(listener: () => void): () => void
  /** Reads the list again. This also happens when the server announces a change. Never rejects. */
  refresh(): Promise<void>
  /**
   * The reason why the list may be out of date: it could not be read, or the connection is closed. The known tools
   * stay.
   */
  readonly failure: Error | undefined
  /** Checks whether the list is up to date, for a conditional group of these tools. */
  readonly probe: Probe
  /** Listed tools that are not offered, with the reason. */
  readonly leftOut: readonly { readonly tool: string; readonly reason: string }[]
  /** Names and globs of the overlay that match no tool. */
  readonly unmatched: readonly string[]
  /** Stops listening for changes. The client stays open: its owner closes it. */
  close(): void
}

/**
 * Reads the tools of a server.
 *
 * @throws {ConfigError} for an invalid overlay
 * @throws the link's error, if the list cannot be read
 */
export async function readMcpSource(
  link: McpLink,
  options: McpSourceOptions,
  onClose: () => void = () => {},
): Promise<McpSource> {
  const source = new LinkSource(link, options, onClose)
  await source.start()
  return source
}

class LinkSource implements McpSource {
  readonly name: string
  readonly namespaces?: readonly string[]
  readonly probe: Probe
  readonly #link: McpLink
  readonly #tools: ServerTools
  readonly #onClose: () => void
  readonly #listeners = new Set<() => void>()
  readonly #watchers = new Set<() => void>()
  #failure: Error | undefined
  #reading: Promise<void> | undefined
  #isStale = false
  #isOpen = true
  #unfollow: (() => void) | undefined

  constructor(
    link: McpLink,
    { namespace, overlay, trustHints = false, inputs }: McpSourceOptions,
    onClose: () => void,
  ) {
    const overlays = toNamedMap('overlay', overlay ?? {})
    for (const [pattern, given] of overlays) checkOverlayFields(pattern, given)
    this.name = namespace ?? 'mcp'
    if (namespace !== undefined) this.namespaces = [namespace]
    this.#link = link
    this.#onClose = onClose
    this.#tools = new ServerTools({
      namespace,
      overlays,
      trustHints,
      inputs,
      executeOf: (tool) => createExecute(link, tool),
    })
    this.probe = {
      key: `mcp:${this.name}`,
      what: `the server ${this.name}`,
      ask: () =>
        this.#failure === undefined || {
          available: false,
          reason: `the server ${this.name} does not answer`,
          detail: this.#failure.message,
        },
      subscribe: (listener) => subscribeTo(this.#watchers, listener),
    }
  }

  async start(): Promise<void> {
    this.#tools.read(await fetchAll(this.#link))
    for (const pattern of this.unmatched)
      warnOnce(`overlay.${pattern}: "${pattern}" names no tool of the server ${this.name}`)
    this.#unfollow = this.#link.follow({
      changed: () => void this.refresh(),
      closed: (error) => this.#setFailure(error),
    })
  }

  /** Always `true`: the list is read before the source is returned. */
  readonly isListed = (): boolean => true

  // A host may call these functions without the object.
  readonly tools = (): readonly Tool[] => this.#tools.tools

  get failure(): Error | undefined {
    return this.#failure
  }

  get leftOut(): McpSource['leftOut'] {
    return this.#tools.leftOut.map(({ tool, error }) => ({ tool, reason: reasonOf(error) }))
  }

  get unmatched(): readonly string[] {
    return this.#tools.unmatched
  }

  readonly subscribe = (listener: () => void): (() => void) => subscribeTo(this.#listeners, listener)

  readonly refresh = (): Promise<void> => {
    // The list that is being read may lack this change.
    this.#isStale = true
    return (this.#reading ??= this.#read())
  }

  readonly close = (): void => {
    this.#isOpen = false
    this.#listeners.clear()
    this.#unfollow?.()
    this.#onClose()
  }

  async #read(): Promise<void> {
    while (this.#isStale && this.#isOpen) {
      this.#isStale = false
      await this.#readOnce()
    }
    this.#reading = undefined
  }

  async #readOnce(): Promise<void> {
    try {
      const listed = await fetchAll(this.#link)
      if (!this.#isOpen) return
      this.#setFailure(undefined)
      this.#tools.read(listed)
      for (const listener of this.#listeners) listener()
    } catch (error) {
      this.#setFailure(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #setFailure(error: Error | undefined): void {
    const hasChanged = (this.#failure === undefined) !== (error === undefined)
    this.#failure = error
    if (hasChanged) for (const watcher of this.#watchers) watcher()
  }
}

function reasonOf(error: Error): string {
  return 'problem' in error && typeof error.problem === 'string' ? error.problem : messageOf(error)
}

const MAX_WARNED = 1000
const warned = new Set<string>()

/** Warns once per message, because a host may connect many times. */
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

function createExecute(link: McpLink, name: string) {
  return async (input: unknown, { signal, onProgress, context, tool }: CallContext): Promise<McpResult> => {
    const call = { name, arguments: isObject(input) ? input : {}, signal, onProgress, context }
    const result = await link.call(call)
    if (!isObject(result)) throw new TypeError('the server answered tools/call without a result')
    return withoutHop(mended(result, tool))
  }
}

/** `null` may be the structured content of a tool that declares an output. In all other places it means absent. */
function mended(result: McpResult, { outputSchema }: Tool): McpResult {
  const kept = withoutNulls(result)
  const isContent = result.structuredContent === null && outputSchema !== undefined && result.isError !== true
  return isContent ? { ...kept, structuredContent: null } : kept
}

const MAX_TOOLS = 10_000
const MAX_PAGES = 1000

async function fetchAll(link: McpLink): Promise<readonly unknown[]> {
  const tools: unknown[] = []
  const cursors = new Set<string>()
  for (let cursor: string | undefined; ; cursors.add(cursor)) {
    const page = await link.list(cursor)
    const { tools: listed, nextCursor } = isObject(page) ? page : {}
    if (!Array.isArray(listed)) throw new TypeError('the server answered tools/list without a list')
    tools.push(...listed)
    if (tools.length > MAX_TOOLS) throw new RangeError(`the server lists more than ${MAX_TOOLS} tools`)
    if (cursors.size >= MAX_PAGES) throw new RangeError(`the server lists more than ${MAX_PAGES} pages of tools`)
    if (typeof nextCursor !== 'string' || nextCursor === '') return tools
    if (cursors.has(nextCursor))
      throw new RangeError('the server lists its tools in a circle: it returned a cursor twice')
    cursor = nextCursor
  }
}

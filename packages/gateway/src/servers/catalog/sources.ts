import { ConfigError, type Tool } from '@toolgate/core'
import { isErrorOf } from '@toolgate/values'
import { InputRequired, type OwnSources, type Source } from '@toolgate/core/toolset'
import { type McpResult, ServerItems, ServerTools } from '@toolgate/mcp'
import { toClientLink } from '../asks/client-link.ts'
import { isStartedTask, isTaskState, TaskCaller, taskSupportOf } from '../asks/upstream-tasks.ts'
import type { ServerConfig } from '../../config/config.ts'
import { type CallParts, senderTo } from '../asks/relayed-call.ts'
import type { Offer, RejectedItem, Upstream, UpstreamItems } from '../../model/upstream.ts'

type SourceConfig = Pick<
  ServerConfig,
  'name' | 'tools' | 'trustHints' | 'inputs' | 'offers' | 'accepts' | 'resources' | 'prompts'
>

/** The parts of a listed server that its source uses. */
type ListedUpstream = Pick<Upstream, 'name' | 'state' | 'items' | 'call'> & Partial<Pick<Upstream, 'subscribe'>>

/** The catalog's source for one server: its latest lists, which are kept while it is down. */
export class UpstreamSource implements Source {
  readonly name: string
  readonly namespaces: readonly string[]
  readonly own: OwnSources | undefined
  readonly #upstream: ListedUpstream
  readonly #offers: readonly Offer[]
  readonly #tools: ServerTools
  readonly #items: ServerItems
  #read: UpstreamItems | undefined
  /** Whether the server ran tasks when its tools were read. */
  #ranTasks = false
  #wasReady = false

  constructor(
    { name, tools, trustHints, inputs, offers, accepts = [], resources, prompts }: SourceConfig,
    upstream: ListedUpstream,
    parts: CallParts,
    own?: OwnSources,
  ) {
    this.own = own
    this.name = name
    this.namespaces = [name]
    this.#upstream = upstream
    this.#offers = offers
    const send = senderTo(upstream, parts, accepts)
    const followed = new Set<string>()
    this.#tools = new ServerTools({
      namespace: name,
      overlays: tools,
      trustHints,
      inputs,
      runsTasks: () => this.#runsTasks(),
      executeOf: (tool, execution) => {
        const support = taskSupportOf(execution)
        return (input, call) => {
          const request = { method: 'tools/call', params: { name: tool, arguments: input } } as const
          const link = toClientLink(call.context)
          const goesOn = link?.answers !== undefined && isTaskState(link.answers.state)
          if (!goesOn && !this.#ranTasks) return send(request, call)
          const { isWanted = false, leave } = link?.tasks ?? {}
          const caller = new TaskCaller(upstream, { support, isTaskClient: isWanted, leave }, followed)
          return send(request, call, caller).then(toTaskRound, (error: unknown) => {
            caller.abandon()
            throw error
          })
        }
      },
    })
    this.#items = new ServerItems({
      namespace: name,
      resources,
      prompts,
      read: (uri, call) => send({ method: 'resources/read', params: { uri } }, call),
      getPrompt: (prompt, input, call) =>
        send({ method: 'prompts/get', params: { name: prompt, arguments: input } }, call),
    })
  }

  /** Listed items that the server's connection or the catalog rejects, with the reason. */
  get rejected(): readonly RejectedItem[] {
    return [...this.#upstream.state.rejected, ...this.rejectedHere]
  }

  /** Listed items that the catalog rejects. The connection logs those that it rejects itself. */
  get rejectedHere(): readonly RejectedItem[] {
    const tools = this.#tools.leftOut.map(({ tool, ...rest }) => ({ kind: 'tool', name: tool, ...rest }) as const)
    return [...tools, ...this.#items.leftOut].map(({ error, ...rest }) => ({ ...rest, reason: reasonOf(error) }))
  }

  /** The names of all listed tools, including disabled ones. */
  get toolNames(): readonly string[] {
    return this.#tools.names
  }

  /** The kinds of items that the server has but its entry does not offer. */
  get dropped(): readonly Offer[] {
    return (this.#upstream.state.has ?? []).filter((offer) => !this.#offers.includes(offer))
  }

  /** Whether the server has listed its items once. If users have their own lists, more items may always come. */
  isListed(): boolean {
    return this.own === undefined && (this.#wasReady ||= this.#upstream.state.status === 'ready')
  }

  tools(): Iterable<Tool> {
    const { items } = this.#upstream
    const read = this.#read
    if (read?.tools !== items.tools || this.#ranTasks !== this.#runsTasks()) this.#tools.read(items.tools)
    if (!read || OTHER_LISTS.some((list) => read[list] !== items[list])) this.#items.read(items)
    this.#read = items
    this.#ranTasks = this.#runsTasks()
    return this.#items.items.length === 0 ? this.#tools.tools : [...this.#tools.tools, ...this.#items.items]
  }

  /** Whether the server runs tasks, so that tools that only run as tasks are offered. */
  #runsTasks(): boolean {
    return this.#upstream.state.tasks === true
  }

  /** Returns the resource of a URI that the server does not list. */
  unlisted(uri: string): Tool | undefined {
    return this.#offers.includes('resources') ? this.#items.unlisted(uri) : undefined
  }

  subscribe(listener: () => void): () => void {
    const unsubscribe = this.#upstream.subscribe?.(() => {
      const isFirst = !this.#wasReady && this.isListed()
      const { items } = this.#upstream
      const read = this.#read
      const isOther = this.#ranTasks !== this.#runsTasks() || !read || LISTS.some((list) => read[list] !== items[list])
      if (isFirst || isOther) listener()
    })
    return unsubscribe ?? (() => {})
  }
}

/** Returns a reason without the item's name, which stands beside it. */
function reasonOf(error: Error): string {
  return isErrorOf(error, ConfigError) ? error.problem : error.message
}

/** Returns an `InputRequired` for a call that its server runs as a task, since the call continues in another round. */
function toTaskRound(result: McpResult | InputRequired): McpResult | InputRequired {
  return isStartedTask(result) ? new InputRequired(result) : result
}

const OTHER_LISTS = ['resources', 'templates', 'prompts'] as const
const LISTS = ['tools', ...OTHER_LISTS] as const

import type { Gate, Tool, View } from '@toolgate/core'
import { createWireNames, expose, type ExposedNames, type ExposedTools, type WireNames } from '@toolgate/expose'
import type { Toolset } from '@toolgate/core/toolset'
import { DynamicStructuredTool, type ModelRequest } from 'langchain'
import { inheritWith } from '../shared/fields.ts'
import { isRun, type LangChainTool, nameOfTool, nativeOf } from './import-tools.ts'

type OfferedDefinition = ExposedTools['langchain'][number]

interface OfferOptions {
  readonly names: ExposedNames
  /** Whether a tool may run beside the gate's. */
  readonly isUngoverned: (name: string) => boolean
  readonly onWarning: (warning: string) => void
}

/** One step, with definitions of the tools that LangChain does not have. They are computed when needed. */
interface OfferedStep {
  readonly view: View
  readonly definitions: () => ReadonlyMap<string, OfferedDefinition>
}

/** The tools of one gate, for LangChain's models. */
export class Offers {
  readonly #catalog: Gate['catalog']
  readonly #options: OfferOptions
  readonly #registered: ReadonlySet<LangChainTool>
  /** LangChain's tools under other names, and the gate's own tools as LangChain's. */
  readonly #shims = new WeakMap<object, LangChainTool>()

  constructor({ catalog }: Pick<Gate, 'catalog'>, options: OfferOptions) {
    this.#catalog = catalog
    this.#options = options
    this.#registered = new Set(
      catalog.snapshot().tools.flatMap((tool) => {
        const native = nativeOf(tool)
        return native ? [this.#named(tool, native)] : []
      }),
    )
  }

  /** The tools that the agent has from the start. LangChain's own tools have names that every provider accepts. */
  get registered(): LangChainTool[] {
    return [...this.#registered]
  }

  /** Whether the host lets a tool of this name run beside the gate's. `false` for names that the gate knows. */
  isUngoverned(name: string): boolean {
    return this.#options.isUngoverned(name) && this.#idOf(name) === undefined
  }

  /**
   * Returns the tools that a step sends, out of the tools that LangChain and other middlewares would send. They are
   * sorted by id; ungoverned tools come last.
   */
  offer(given: readonly LangChainTool[], step: View): readonly LangChainTool[] {
    const beside: LangChainTool[] = []
    const byName = new Map<string, LangChainTool>()
    for (const tool of given) {
      const name = nameOfTool(tool)
      if (name === undefined) continue
      if (!byName.has(name)) byName.set(name, tool)
      if (this.isUngoverned(name)) beside.push(tool)
      else if (this.#idOf(name) === undefined) this.#options.onWarning(UNGOVERNED(name))
    }
    let definitions: ReadonlyMap<string, OfferedDefinition> | undefined
    const asked: OfferedStep = { view: step, definitions: () => (definitions ??= this.#definitionsOf(step)) }
    const own = step.tools.map((tool) => this.#choose(tool, byName, asked)).filter((tool) => tool !== undefined)
    return [...own, ...beside]
  }

  /** Returns the tools that may go to the provider, out of the tools that the middlewares have bound. */
  admit(bound: readonly LangChainTool[], offered: readonly LangChainTool[]): readonly LangChainTool[] {
    const admitted = new Set<unknown>(offered)
    return bound.filter((tool) => {
      const name = nameOfTool(tool) ?? ''
      // For a structured answer LangChain adds a function that nobody runs.
      const isAnswer = !isRun(tool) && tool['type'] === 'function' && this.#idOf(name) === undefined
      return admitted.has(tool) || isAnswer || this.isUngoverned(name)
    })
  }

  #choose(tool: Tool, given: ReadonlyMap<string, LangChainTool>, step: OfferedStep): LangChainTool | undefined {
    const name = this.#options.names.toName(tool.id)
    if (name === undefined) return undefined
    const found = given.get(name)
    const native = nativeOf(tool)
    if (native) return this.#chooseNative(this.#named(tool, native), found)
    // The provider runs this tool without asking, so nobody could approve a call.
    if (!tool.execute)
      return found && !isRun(found) && step.view.explain(tool.id).outcome === 'allow' ? found : undefined
    if (found) return found
    const definition = step.definitions().get(name)
    return definition && this.#shim(definition, () => toShim(definition))
  }

  #chooseNative(own: LangChainTool, found: LangChainTool | undefined): LangChainTool | undefined {
    if (found && found !== own) this.#options.onWarning(OTHERS(nameOfTool(own)))
    // If a registered tool is missing from the given ones, another middleware removed it from this step.
    return found || !this.#registered.has(own) ? own : undefined
  }

  #definitionsOf(view: View): ReadonlyMap<string, OfferedDefinition> {
    const { tools, errors } = expose(view, 'langchain')
    for (const { tool, message } of errors) this.#options.onWarning(`${tool} is not offered: it ${message}`)
    return new Map(tools.map((definition) => [definition.name, definition]))
  }

  #named(tool: Tool, native: LangChainTool): LangChainTool {
    const name = this.#options.names.toName(tool.id)
    if (name === undefined || name === nameOfTool(native)) return native
    return this.#shim(native, () => inheritWith(native, { name }))
  }

  #shim(of: object, make: () => LangChainTool): LangChainTool {
    let shim = this.#shims.get(of)
    if (!shim) this.#shims.set(of, (shim = make()))
    return shim
  }

  /** Returns the id of a tool by its wire name or its id. */
  #idOf(name: string): string | undefined {
    return this.#options.names.toId(name) ?? this.#catalog.snapshot().get(name)?.id
  }
}

const UNGOVERNED = (name: string) =>
  `the agent has a tool "${name}" that the gate does not know: it is neither sent nor run. Import it with fromLangChain, or name it in ungoverned`

const OTHERS = (name: string | undefined) =>
  `the agent has a tool "${name}" that differs from the gate's: the gate's is sent and run`

/** The body of a tool that only the gate runs. */
function runsAtTheGate(): never {
  throw new TypeError('this tool is run by its gate only')
}

function toShim({ name, description, schema, metadata, extras }: OfferedDefinition): LangChainTool {
  return new DynamicStructuredTool({
    name,
    description,
    schema,
    func: runsAtTheGate,
    ...(metadata && { metadata }),
    ...(extras && { extras }),
  })
}

type Model = ModelRequest['model']

/** Called with the tools that are bound to a model, before they are sent to the provider. */
type OnBound = (tools: readonly LangChainTool[]) => readonly LangChainTool[]

/**
 * Returns a model that passes its tools through `onBound` when they are bound. Binding comes after all other
 * middlewares, so a tool that was added late is not sent, and a tool that was removed late counts as removed.
 */
export function watchModel(model: Model, onBound: OnBound): Model {
  return watched(model, onBound)
}

function watched<T extends object>(model: T, onBound: OnBound): T {
  return new Proxy(model, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      // A model with configuration or options wraps the one that tools are bound to.
      if (key === 'bound' && typeof value === 'object' && value !== null) return watched(value, onBound)
      if (typeof value !== 'function' || key === 'constructor') return value
      if (key === 'bindTools')
        return (tools: readonly LangChainTool[], ...more: unknown[]): unknown =>
          Reflect.apply(value, target, [onBound(tools), ...more])
      // `this` is the model itself, because the proxy does not have its private fields.
      return (...asked: unknown[]): unknown => Reflect.apply(value, target, asked)
    },
  })
}

/** Returns the wire names of tools. They depend on the ids alone, so those of the whole catalog serve every view. */
export function createNames({ catalog }: Pick<Gate, 'catalog'>): ExposedNames {
  let known: { readonly snapshot: Toolset; readonly names: WireNames } | undefined
  const now = (): WireNames => {
    const snapshot = catalog.snapshot()
    if (known?.snapshot !== snapshot) known = { snapshot, names: createWireNames(snapshot.tools) }
    return known.names
  }
  return { toId: (name) => now().toId(name), toName: (id) => now().toName(id) }
}

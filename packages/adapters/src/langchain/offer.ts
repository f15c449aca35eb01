import type { Gate, Tool, View } from '@toolgate/core'
import { createWireNames, expose, type ExposedNames, type ExposedTools, type WireNames } from '@toolgate/core/expose'
import type { Toolset } from '@toolgate/core/toolset'
import { DynamicStructuredTool, type ModelRequest } from 'langchain'
import { inheritWith } from '../shared/fields.ts'
import { isRun, type LangChainTool, nameOfTool, nativeOf } from './import-tools.ts'

type Definition = ExposedTools['langchain'][number]

interface OfferOptions {
  readonly names: ExposedNames
  /** Which tools may stand beside the gate's. */
  readonly isUngoverned: (name: string) => boolean
  readonly onWarning: (warning: string) => void
}

/** What one gate's tools are for a model of LangChain's. */
interface Offers {
  /** The tools that the agent has from the start: LangChain's own, each by a name that every provider takes. */
  readonly registered: readonly LangChainTool[]
  /** Whether a name is of a tool that the host lets run beside the gate's. A name that the gate knows never is. */
  isUngoverned(name: string): boolean
  /** Gives what a step sends, of what LangChain and other middlewares would: in the order of the ids, and the ungoverned last. */
  offer(given: readonly LangChainTool[], step: View): readonly LangChainTool[]
  /** Gives what of it may go to the provider, when all middlewares have had their say. */
  admit(bound: readonly LangChainTool[], offered: readonly LangChainTool[]): readonly LangChainTool[]
}

/** One step, with the definitions of the tools that are not LangChain's own: computed where there are any. */
interface Step {
  readonly view: View
  readonly definitions: () => ReadonlyMap<string, Definition>
}

export function createOffers(gate: Pick<Gate, 'catalog'>, { names, isUngoverned, onWarning }: OfferOptions): Offers {
  const shims = new WeakMap<object, LangChainTool>()
  const named = (tool: Tool, native: LangChainTool): LangChainTool => {
    const name = names.toName(tool.id)
    if (name === undefined || name === nameOfTool(native)) return native
    let shim = shims.get(native)
    if (!shim) shims.set(native, (shim = renamed(name, native)))
    return shim
  }
  const made = (definition: Definition): LangChainTool => {
    let shim = shims.get(definition)
    if (!shim) shims.set(definition, (shim = toShim(definition)))
    return shim
  }

  const choose = (tool: Tool, given: ReadonlyMap<string, LangChainTool>, step: Step): LangChainTool | undefined => {
    const name = names.toName(tool.id)
    if (name === undefined) return undefined
    const found = given.get(name)
    const native = nativeOf(tool)
    if (native) return chooseNative(named(tool, native), found)
    // What the provider runs cannot be asked about, so nobody could approve it.
    if (!tool.execute)
      return found && !isRun(found) && step.view.explain(tool.id).outcome === 'allow' ? found : undefined
    if (found) return found
    const definition = step.definitions().get(name)
    return definition && made(definition)
  }

  const chooseNative = (own: LangChainTool, found: LangChainTool | undefined): LangChainTool | undefined => {
    if (found && found !== own) onWarning(OTHERS(nameOfTool(own)))
    // What is registered and not among those given, another middleware has taken out of this step.
    return found || !registered.has(own) ? own : undefined
  }

  const definitionsOf = (view: View): ReadonlyMap<string, Definition> => {
    const { tools, errors } = expose(view, 'langchain')
    for (const { tool, message } of errors) onWarning(`${tool} is not offered: it ${message}`)
    return new Map(tools.map((definition) => [definition.name, definition]))
  }

  const registered = new Set(
    gate.catalog.snapshot().tools.flatMap((tool) => {
      const native = nativeOf(tool)
      return native ? [named(tool, native)] : []
    }),
  )
  const mayPass = (name: string): boolean => isUngoverned(name) && idOf(gate, names, name) === undefined
  return {
    registered: [...registered],
    isUngoverned: mayPass,
    offer(given, step) {
      const beside: LangChainTool[] = []
      const byName = new Map<string, LangChainTool>()
      for (const tool of given) {
        const name = nameOfTool(tool)
        if (name === undefined) continue
        if (!byName.has(name)) byName.set(name, tool)
        if (mayPass(name)) beside.push(tool)
        else if (idOf(gate, names, name) === undefined) onWarning(UNGOVERNED(name))
      }
      let definitions: ReadonlyMap<string, Definition> | undefined
      const asked: Step = { view: step, definitions: () => (definitions ??= definitionsOf(step)) }
      const own = step.tools.map((tool) => choose(tool, byName, asked)).filter((tool) => tool !== undefined)
      return [...own, ...beside]
    },
    admit(bound, offered) {
      const admitted = new Set<unknown>(offered)
      // What LangChain adds for a structured answer is no tool of anybody's: nothing runs by it.
      const isAnswer = (tool: LangChainTool) =>
        !isRun(tool) && tool['type'] === 'function' && idOf(gate, names, nameOfTool(tool) ?? '') === undefined
      return bound.filter((tool) => admitted.has(tool) || isAnswer(tool) || mayPass(nameOfTool(tool) ?? ''))
    },
  }
}

const UNGOVERNED = (name: string) =>
  `the agent has a tool "${name}" that the gate does not know: it is neither sent nor run. Bring it in with fromLangChain, or name it in ungoverned`

const OTHERS = (name: string | undefined) =>
  `the agent has a tool "${name}" that is another than the gate's: the gate's is sent and run`

/** A tool that was given by its id, and is sent by another name, is the gate's all the same. */
function idOf({ catalog }: Pick<Gate, 'catalog'>, names: ExposedNames, name: string): string | undefined {
  return names.toId(name) ?? catalog.snapshot().get(name)?.id
}

/** The gate runs it, and not LangChain. */
function runsAtTheGate(): never {
  throw new TypeError('this tool is run by its gate only')
}

function toShim({ name, description, schema, metadata, extras }: Definition): LangChainTool {
  return new DynamicStructuredTool({
    name,
    description,
    schema,
    func: runsAtTheGate,
    ...(metadata && { metadata }),
    ...(extras && { extras }),
  })
}

function renamed(name: string, native: LangChainTool): LangChainTool {
  return inheritWith(native, { name })
}

type Model = ModelRequest['model']

/** The tools that are bound to a model, on their way to the provider. */
type OnBound = (tools: readonly LangChainTool[]) => readonly LangChainTool[]

/**
 * Gives the same model, whose tools pass through `onBound` when they are bound: after every other middleware has had
 * its say, so that what is added late is not sent, and what was taken out late is known.
 */
export function watchModel(model: Model, onBound: OnBound): Model {
  return watched(model, onBound)
}

function watched<T extends object>(model: T, onBound: OnBound): T {
  return new Proxy(model, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      // A model that is configured or bound to options holds the one that tools are bound to.
      if (key === 'bound' && typeof value === 'object' && value !== null) return watched(value, onBound)
      if (typeof value !== 'function' || key === 'constructor') return value
      if (key === 'bindTools')
        return (tools: readonly LangChainTool[], ...more: unknown[]): unknown =>
          Reflect.apply(value, target, [onBound(tools), ...more])
      // With the model itself as `this`: its private fields are not the proxy's.
      return (...asked: unknown[]): unknown => Reflect.apply(value, target, asked)
    },
  })
}

/** Gives the names by which tools are sent. They depend on the ids alone, so those of the whole catalog serve every view. */
export function createNames({ catalog }: Pick<Gate, 'catalog'>): ExposedNames {
  let known: { readonly snapshot: Toolset; readonly names: WireNames } | undefined
  const now = (): WireNames => {
    const snapshot = catalog.snapshot()
    if (known?.snapshot !== snapshot) known = { snapshot, names: createWireNames(snapshot.tools) }
    return known.names
  }
  return { toId: (name) => now().toId(name), toName: (id) => now().toName(id) }
}

import type { RequestContext } from '@mastra/core/request-context'
import type { CallOutcome, CallRequest, Tool, View } from '@toolgate/core'
import { createWireNames, toWireName, type WireNames } from '@toolgate/expose'
import { sha256Hex } from '@toolgate/values'
import type { Toolset } from '@toolgate/core/toolset'
import { RefusedCall } from '../shared/refused.ts'
import { createOnCall, createWarn, type GuardListeners } from '../shared/runs.ts'
import type { AnyGate } from './options.ts'
import { isSameCaller, type Request } from './runs.ts'

/** A call by Mastra. */
interface MastraCall extends Pick<CallRequest, 'input' | 'callId' | 'signal' | 'context' | 'malformed'> {
  /** The tool's name as the model wrote it. */
  readonly name: string
  readonly place?: CallPlace | undefined
  /** The view of this call. Default: the view of its step. */
  readonly view?: View | undefined
}

/** The step that a call belongs to. Mastra tells processors the step, but not tools. */
interface CallPlace {
  readonly request: Request
  /** The view of the step. */
  readonly view: View
  readonly step: number
  readonly model: string | undefined
}

/** Passes calls to the gate. It uses Mastra's names of the tools. */
export class Calls {
  readonly #catalog: AnyGate['catalog']
  readonly #report: ReturnType<typeof createOnCall>
  readonly #places = new WeakMap<RequestContext, Map<string, CallPlace>>()
  #known: { readonly snapshot: Toolset; readonly names: WireNames } | undefined

  constructor({ catalog }: Pick<AnyGate, 'catalog'>, { onCall, onWarning }: GuardListeners) {
    this.#catalog = catalog
    this.#report = createOnCall(onCall, createWarn(onWarning))
  }

  names(): WireNames {
    const snapshot = this.#catalog.snapshot()
    if (this.#known?.snapshot !== snapshot) this.#known = { snapshot, names: createMastraNames(snapshot.tools) }
    return this.#known.names
  }

  /** Stores the step of a call until the call is made. */
  expect(requestContext: RequestContext, callId: string, place: CallPlace): void {
    const expected = this.#places.get(requestContext) ?? new Map<string, CallPlace>()
    this.#places.set(requestContext, expected.set(callId, place))
  }

  /** Returns the step of a call, once. */
  placeOf(requestContext: RequestContext, callId: string = ''): CallPlace | undefined {
    const expected = this.#places.get(requestContext)
    const place = expected?.get(callId)
    expected?.delete(callId)
    return place
  }

  async make(request: Request, call: MastraCall): Promise<CallOutcome> {
    const { name, place } = call
    // A view belongs to one caller and one moment. For another caller, the request's own view is used.
    const at = place && isSameCaller(place.request, request) ? place : undefined
    const view = call.view ?? at?.view ?? request.view.narrow({})
    const outcome = await view.call(this.toRequest(at?.request ?? request, call))
    this.#report?.({ tool: this.names().toId(name) ?? name, name, stepNumber: place?.step }, outcome)
    return outcome
  }

  toRequest({ run }: Request, { name, place, view: _, ...call }: MastraCall): CallRequest {
    const { toId, toName } = this.names()
    return {
      ...call,
      tool: toId(name),
      calledAs: name,
      nameOf: (id) => toName(id) ?? id,
      idOf: toId,
      run: { ...run, step: place?.step, model: place?.model },
    }
  }
}

/** The names that Mastra does not change. It rewrites all others, and could give two tools the same name. */
const KEPT_BY_MASTRA = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/
const HASH_LENGTH = 10

/** Returns a tool's name for Mastra and the model. */
function toMastraName(tool: Pick<Tool, 'id' | 'namespace' | 'name'>): string {
  const name = toWireName(tool)
  return KEPT_BY_MASTRA.test(name) ? name : `_${name.slice(0, 50)}_${sha256Hex(tool.id).slice(0, HASH_LENGTH)}`
}

function createMastraNames(tools: Iterable<Tool>): WireNames {
  return createWireNames([...tools], toMastraName)
}

/**
 * A refusal as an error. Mastra stores and sends an error as JSON and rebuilds it, so the JSON must be an object with a
 * message.
 */
export class RefusedMastraCall extends RefusedCall {
  override toJSON(): unknown {
    return { message: this.message }
  }
}

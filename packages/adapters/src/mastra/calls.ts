import type { RequestContext } from '@mastra/core/request-context'
import type { CallOutcome, CallRequest, Tool, View } from '@toolgate/core'
import { createWireNames, toWireName, type WireNames } from '@toolgate/core/expose'
import { sha256Hex } from '@toolgate/core/internal'
import type { Toolset } from '@toolgate/core/toolset'
import { RefusedCall } from '../shared/refused.ts'
import { createOnCall, createWarn, type GuardListeners } from '../shared/runs.ts'
import type { AnyGate } from './options.ts'
import { isSameCaller, type Request } from './runs.ts'

/** A call as Mastra makes it. */
interface MastraCall extends Pick<CallRequest, 'input' | 'callId' | 'signal' | 'context' | 'malformed'> {
  /** As the model wrote it. */
  readonly name: string
  readonly place?: Place | undefined
  /** What it sees, where that is not what its place sees. */
  readonly view?: View | undefined
}

/** Where a call stands. Mastra tells that to processors only, not to tools. */
interface Place {
  readonly request: Request
  /** What the step sees. */
  readonly view: View
  readonly step: number
  readonly model: string | undefined
}

/** Takes calls through the gate, under the names that Mastra knows the tools by. */
export interface Calls {
  names(): WireNames
  /** Remembers where a call stands until it is made. */
  expect(requestContext: RequestContext, callId: string, place: Place): void
  placeOf(requestContext: RequestContext, callId: string | undefined): Place | undefined
  make(request: Request, call: MastraCall): Promise<CallOutcome>
  toRequest(request: Request, call: MastraCall): CallRequest
}

export function createCalls(gate: Pick<AnyGate, 'catalog'>, { onCall, onWarning }: GuardListeners): Calls {
  const report = createOnCall(onCall, createWarn(onWarning))
  const places = new WeakMap<RequestContext, Map<string, Place>>()
  let known: { readonly snapshot: Toolset; readonly names: WireNames } | undefined

  function names(): WireNames {
    const snapshot = gate.catalog.snapshot()
    if (known?.snapshot !== snapshot) known = { snapshot, names: createMastraNames(snapshot.tools) }
    return known.names
  }

  async function made({ name, place }: MastraCall, calling: Promise<CallOutcome>): Promise<CallOutcome> {
    const outcome = await calling
    report?.({ tool: names().toId(name) ?? name, name, stepNumber: place?.step }, outcome)
    return outcome
  }

  function toRequest({ run }: Request, { name, place, view: _, ...call }: MastraCall): CallRequest {
    const { toId, toName } = names()
    return {
      ...call,
      tool: toId(name),
      calledAs: name,
      nameOf: (id) => toName(id) ?? id,
      idOf: toId,
      run: { ...run, step: place?.step, model: place?.model },
    }
  }

  return {
    names,
    toRequest,
    expect(requestContext, callId, place) {
      const expected = places.get(requestContext) ?? new Map<string, Place>()
      places.set(requestContext, expected.set(callId, place))
    },
    placeOf(requestContext, callId = '') {
      const expected = places.get(requestContext)
      const place = expected?.get(callId)
      expected?.delete(callId)
      return place
    },
    make(request, call) {
      // A view is of one moment and one caller: where the step's is of another, what is seen is read anew.
      const at = call.place && isSameCaller(call.place.request, request) ? call.place : undefined
      const view = call.view ?? at?.view ?? request.view.narrow({})
      return made(call, view.call(toRequest(at?.request ?? request, call)))
    },
  }
}

/** Mastra rewrites every other name by itself, and then two tools may meet in one. */
const KEPT_BY_MASTRA = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/
const HASH_LENGTH = 10

/** Gives the name by which Mastra and the model know a tool. */
function toMastraName(tool: Pick<Tool, 'id' | 'namespace' | 'name'>): string {
  const name = toWireName(tool)
  return KEPT_BY_MASTRA.test(name) ? name : `_${name.slice(0, 50)}_${sha256Hex(tool.id).slice(0, HASH_LENGTH)}`
}

function createMastraNames(tools: Iterable<Tool>): WireNames {
  return createWireNames([...tools], toMastraName)
}

/** Mastra rebuilds an error from its JSON where it stores or sends one, so that has to be an object with a message. */
export class RefusedMastraCall extends RefusedCall {
  override toJSON(): unknown {
    return { message: this.message }
  }
}

import { acceptedInput, type CallPorts, type CallView, portsOf, preview, toCallView } from '@toolgate/core/call'
import type { CallPreview } from '@toolgate/core/toolset'
import {
  answersOf,
  ASKED_LAYERS,
  CallHistory,
  decideShadows,
  type Histories,
  LAYER_ORDER,
  type LayerAnswer,
} from '@toolgate/core/decide'
import { chain, checkShape, isToolError, shapeOf } from '@toolgate/values'
import { isItemId } from '@toolgate/core/tools'
import { isObject } from '@toolgate/values/json'
import type { Decision, Tool, View } from '@toolgate/core'
import { type HistoryStore, memoryHistories } from '@toolgate/core/stores'
import type { RunOfCall } from '@toolgate/core/audit'
import { findHistoryProblems, type TestProblem } from './check-tests.ts'
import { parseAgo, type StatedHistory } from './policy-test.ts'
import { statedHistories } from './stated.ts'
import type { NeededChange } from './needed-change.ts'
import { whatWouldAllow } from './what-would-allow.ts'

/** A call to try without making it. */
interface AskedDryRun {
  readonly tool: string
  readonly input: unknown
  /** A history to use instead of the real one. `checkHistory` must have found no problem in it. */
  readonly history?: StatedHistory | undefined
  /** The items that earlier calls may name. */
  readonly items?: readonly Tool[]
}

const ASKED = shapeOf<AskedDryRun>({ tool: true, input: true, history: true, items: true })

/** The decision that a call would get now, with the answer of each layer. */
export interface DryRun {
  readonly preview: CallPreview
  /** The deciding layer first. */
  readonly answers: readonly LayerAnswer[]
  /** The decisions of the shadow policies. Absent without shadow policies. */
  readonly shadow?: Decision
  /** The ways to make the call pass. */
  readonly ways: readonly (readonly NeededChange[])[]
}

/**
 * Returns the result that a call would have now, or after a stated history. Runs nothing and asks
 * nobody. Limits and clauses do not count it, and it leaves no record and no history.
 */
export async function dryRun(view: View, dry: AskedDryRun): Promise<DryRun> {
  checkShape('dryRun', dry, ASKED)
  const { tool, input, history, items = [] } = dry
  const asked = toCallView(view)
  const ports = portsOf(view) as CallPorts
  const run = history && runOf(history)
  const histories = history ? await afterStated(asked, ports, { history, items }) : aside(ports)
  const request = history ? { tool, input, ...(run && { run }) } : asked.ofRun({ tool, input })
  const previewed = await preview(asked, request, { ...ports, histories })
  const { facts, shadowFacts } = previewed
  const decided = asked.decide(tool)
  const accept = (one: unknown) => (decided.tool ? acceptedInput(decided.tool, one, ports) : undefined)
  const shadow = decideShadows(decided, { input: accept(input)?.value ?? input, facts: shadowFacts, hits: [] })
  const reasons = [...view.explain(tool).reasons, ...previewed.decision.reasons]
  const passed = previewed.status === 'refused' ? [] : (['input', 'limits'] as const)
  const said = new Set([...ASKED_LAYERS, ...passed, ...reasons.map(({ layer }) => layer)])
  return {
    preview: previewed,
    answers: answersOf(
      LAYER_ORDER.filter((layer) => said.has(layer)),
      reasons,
    ),
    ...(shadow && { shadow }),
    ways: whatWouldAllow(view, tool, { input, facts, accept }),
  }
}

/** The most calls, and the most labels, in a stated history. */
const MAX_STATED = 200

/** Returns all problems of a stated history. `items`: those that its calls may name. */
export function checkHistory(view: View, history: unknown, items: readonly Tool[]): readonly TestProblem[] {
  for (const list of ['calls', 'labels'] as const) {
    const stated = isObject(history) ? history[list] : undefined
    if (Array.isArray(stated) && stated.length > MAX_STATED)
      return [{ path: [list], message: `has more than ${MAX_STATED} ${list}`, isKey: false }]
  }
  const { histories, validate } = portsOf(view) as CallPorts
  const found = findHistoryProblems(history, {
    tools: items.map(({ id }) => id),
    servers: new Set(items.flatMap(({ kind, namespace = '' }) => (kind === 'tool' ? [] : [namespace]))),
    labels: [
      ...new Set([
        ...histories.labels().names,
        ...(histories.rules?.labels ?? []),
        ...(histories.shadows?.rules?.labels ?? []),
        ...items.flatMap(({ labels }) => labels),
      ]),
    ],
  })
  if (found.length > 0) return found
  const { calls = [] } = history as StatedHistory
  const find = finder(toCallView(view), items)
  return calls.flatMap(({ tool: id, input = {} }, i) => {
    const tool = find(id)
    if (!tool) return [{ path: ['calls', i, 'tool'], message: `unknown tool ${JSON.stringify(id)}`, isKey: false }]
    const problem = tool.kind === 'tool' ? validate(tool.inputSchema, input) : undefined
    if (!problem) return []
    const { pointer, message } = problem
    const text = `cannot have been called so: the input${pointer === '' ? '' : ` at ${pointer}`} ${message}`
    return [{ path: ['calls', i, ...(calls[i]?.input === undefined ? [] : ['input'])], message: text, isKey: false }]
  })
}

/** A resource that was read need not be listed. */
function finder(view: CallView, items: readonly Tool[]): (id: string) => Tool | undefined {
  const known = new Map(items.map((item) => [item.id, item]))
  return (id) => known.get(id) ?? (isItemId(id) ? view.decide(id).tool : undefined)
}

function runOf({ run = true, said, lost = false }: StatedHistory): RunOfCall | undefined {
  if (!run) return undefined
  return { id: 'stated', ...(said !== undefined && { userWords: said }), ...(lost && { resumed: true }) }
}

/** Returns histories that hold only the stated one. */
async function afterStated(
  view: CallView,
  { histories, clock }: CallPorts,
  { history, items }: Pick<Required<AskedDryRun>, 'items'> & { readonly history: StatedHistory },
): Promise<Histories> {
  const atMs = clock.wallMs()
  let msAgo = 0
  const stated = histories.apart(statedHistories(history.labels ?? []), () => atMs - msAgo)
  const { calls = [] } = history
  const find = finder(view, items)
  const run = runOf(history)
  for (const kept of [stated, stated.shadows]) {
    if (!kept?.rules) continue
    msAgo = parseAgo(calls[0]?.ago) ?? 0
    const opened = await kept.of(view.caller, run, true, true)
    for (const { tool: id, input = {}, output = null, failed = false, ago } of calls) {
      msAgo = parseAgo(ago) ?? 0
      const tool = find(id)
      if (!tool) throw new TypeError(`no item has the id ${id}`)
      const call = new CallHistory(kept, opened, undefined)
      await call.begin(tool, input, false, () => undefined)
      await call.end(tool, input, failed ? FAILED : { done: !isToolError(output), output })
    }
  }
  msAgo = 0
  return stated
}

const FAILED = { done: false, output: 'it failed' }

/** Returns a copy of the histories, so that nothing is added to the real ones. */
function aside({ histories }: CallPorts): Histories {
  return histories.isActive ? histories.apart(copyOnRead(histories.store)) : histories
}

/** Returns a store that copies a history from another store at its first read, and keeps additions to itself. */
function copyOnRead(store: HistoryStore): HistoryStore {
  const own = memoryHistories()
  const copy: HistoryStore['read'] = (id, since, nowMs) => {
    const known = own.read(id, since, nowMs)
    if (known) return known
    return chain(store.read(id, undefined, nowMs), (part) => {
      if (!part) return undefined
      const { kept, items, expiresAt } = part
      const opened = own.open(id, { owner: '', kept, nowMs, expiresAt })
      own.add(id, { items, since: opened, unlessChanged: false, nowMs, expiresAt })
      return own.read(id, undefined, nowMs)
    })
  }
  return { ...own, read: copy }
}

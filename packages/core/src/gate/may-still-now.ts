import { type CallPorts, type CallView, storeInTime } from '../call/attempt.ts'
import { acceptedInput } from '../call/deciding.ts'
import { CostError, type LimitUseOf, withCosts } from '../call/costs.ts'
import { byCap } from '../call/may-still.ts'
import { replicaUnsure } from '../call/refusals.ts'
import { type Decided, decideWithInput } from '../decide/decide.ts'
import { type MayStill, mayGoOn, type Reason, reason } from '../decide/decision.ts'
import { portsOf, toCallView, type View } from '../gate/view.ts'
import { probeInputs } from './probe-inputs.ts'

/** The most limits that are read for one list. A limit that was not read counts as perhaps used up. */
const MAX_PEEKS = 500
const AT_ONCE = 50

interface Options {
  /** Awaited between parts of the work, so that other calls can run. */
  readonly rest?: (() => Promise<void>) | undefined
  /** The parts of a call that the caller stated and that were already judged. Reasons that depend on them are left out. */
  readonly known?: readonly ('input' | 'run')[]
}

/**
 * Returns the reasons that may still refuse a call of an item, each with an example input for its rule if one is found.
 * Limits and caps are included only if they refuse the call now. Limits and clauses do not count it.
 */
export async function mayStillNow(view: View, id: string, options: Options = {}): Promise<readonly MayStill[]> {
  const ports = portsOf(view)
  if (!ports) return view.explain(id).mayStill
  const asked = toCallView(view)
  const decided = asked.decide(id)
  const known = new Set<string>(['now', ...(options.known ?? [])])
  const open = view.explain(id).mayStill.filter(({ on }) => !known.has(on))
  const now = (await refusedNow(view, [id], options)).get(id) ?? []
  if (open.every(({ on }) => on !== 'input')) return [...open, ...now]
  const inputs = probesFor(decided, open, ports)
  const left = await leftOf(asked.usesOf(decided), ports)
  const shown: MayStill[] = []
  for (const one of open) {
    await options.rest?.()
    const example = one.on === 'input' ? findExample(one, inputs, { decided, asked, left }) : undefined
    shown.push(example ? { ...one, example: example.input } : one)
  }
  return [...shown, ...now]
}

/** Returns the reasons that refuse every call of some items now: a used-up limit, a full cap, an ended lease. */
export async function refusedNow(
  view: View,
  ids: readonly string[],
  { rest }: Options = {},
): Promise<ReadonlyMap<string, readonly MayStill[]>> {
  const ports = portsOf(view)
  // A view that the host implements has no limits.
  if (!ports) return new Map()
  const asked = toCallView(view)
  const found = new Map<string, MayStill[]>()
  const note = (id: string, may: MayStill) => found.set(id, [...(found.get(id) ?? []), may])
  const lapse = ports.lease?.lapse()
  const uses = new Map<string, { readonly use: LimitUseOf; readonly ids: string[] }>()
  for (const [i, id] of ids.entries()) {
    if (i % AT_ONCE === AT_ONCE - 1) await rest?.()
    const decided = asked.decide(id)
    if (!decided.tool || !mayGoOn(decided.outcome)) continue
    for (const one of lapse ? replicaUnsure(lapse).reasons : []) note(id, { ...one, on: 'now' })
    const cap = ports.slots?.fullOf(ports.slots.capsOf(decided.tool, asked.caller))
    if (cap) note(id, byCap(cap))
    for (const use of asked.usesOf(decided)) {
      if (use.costing) continue
      const known = uses.get(use.key)
      if (known) known.ids.push(id)
      else uses.set(use.key, { use, ids: [id] })
    }
  }
  const all = [...uses.values()]
  let peeks = MAX_PEEKS
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const part = all.slice(at, at + AT_ONCE)
    const used = await usedUp(
      part.map(({ use }) => use),
      ports,
      () => peeks-- > 0,
    )
    for (const { use, ids: named } of part) {
      const may = used.get(use)
      if (may) for (const id of named) note(id, may)
    }
    await rest?.()
  }
  return found
}

/** Asks all limits together, then again without each one that refuses, until the others allow. */
async function usedUp(
  uses: readonly LimitUseOf[],
  ports: CallPorts,
  mayPeek: () => boolean,
): Promise<ReadonlyMap<LimitUseOf, MayStill>> {
  const found = new Map<LimitUseOf, MayStill>()
  let others = uses
  try {
    while (others.length > 0) {
      if (!mayPeek()) throw new Error('too many limits are used up')
      const answer = await storeInTime(ports, ports.counters.peek(others))
      if ((answer.allowed as unknown) === true) return found
      const use = others[answer.refused]
      if (!use) throw new TypeError('the store of limits answered nonsense')
      found.set(use, limited(use, 'is used up', answer.resetMs))
      others = others.filter((one) => one !== use)
    }
  } catch (error) {
    ports.onFault(error)
    for (const use of others) found.set(use, limited(use, 'could not be asked, and may be used up'))
  }
  return found
}

function limited({ rule, label }: LimitUseOf, what: string, resetMs?: number): MayStill {
  const more = { limit: label, ...(resetMs !== undefined && { resetMs }) }
  return { ...reason('limits', 'rate_limited', `the limit ${rule}:${label} ${what}`, more), on: 'now' }
}

/** Returns how much is left of each limit with a cost, by its label; 0 for a limit that cannot be read. */
async function leftOf(uses: readonly LimitUseOf[], ports: CallPorts): Promise<ReadonlyMap<LimitUseOf, number>> {
  const left = new Map<LimitUseOf, number>()
  for (const use of uses) {
    if (!use.costing) continue
    try {
      const { remaining } = await storeInTime(ports, ports.counters.peek([{ ...use, cost: 0 }]))
      left.set(use, Math.max(0, remaining))
    } catch (error) {
      ports.onFault(error)
    }
  }
  return left
}

/** An input, and the same input with its schema's defaults. The call is decided on the second. */
interface ProbedCall {
  readonly input: unknown
  readonly value: unknown
}

/** Returns inputs that the tool accepts. */
function probesFor({ tool }: Decided, open: readonly MayStill[], ports: CallPorts): readonly ProbedCall[] {
  if (!tool) return []
  const texts = open.map(({ text }) => text)
  return probeInputs(tool, texts).flatMap((input) => {
    const accepted = acceptedInput(tool, input, ports)
    return accepted ? [{ input, value: accepted.value }] : []
  })
}

interface Judge {
  readonly decided: Decided
  readonly asked: CallView
  readonly left: ReadonlyMap<LimitUseOf, number>
}

function findExample(one: MayStill, probes: readonly ProbedCall[], judge: Judge): ProbedCall | undefined {
  const shows = one.layer === 'limits' ? costsTooMuch : isDecidedBy
  return probes.find(({ value }) => shows(one, value, judge))
}

function isDecidedBy({ path = '', outcome }: MayStill, input: unknown, { decided }: Judge): boolean {
  // An allow list denies as a whole, so its clauses share one path.
  const list = /^(.*\.allow)\[\d+\]$/.exec(path)?.[1]
  const isOfRule = (given: Reason) => given.path === path || (list !== undefined && given.path === list)
  return decideWithInput(decided, input).reasons.some(
    (given) => isOfRule(given) && given.outcome === outcome && given.code !== 'policy_error',
  )
}

function costsTooMuch({ text }: MayStill, input: unknown, { decided, asked, left }: Judge): boolean {
  const { tool } = decided
  return [...left].some(([use, amount]) => {
    if (!tool || !text.startsWith(`the limit ${use.rule}:${use.label} `)) return false
    try {
      const [costed] = withCosts([use], { caller: asked.caller, tool, input })
      return (costed?.cost ?? 1) > amount
    } catch (error) {
      if (error instanceof CostError) return true
      throw error
    }
  })
}

import type { Tool, View } from '@toolgate/core'
import { compareToolIds } from '@toolgate/core/internal'
import { type Offered, offerImported, offerOwn } from './offered.ts'
import type { GuardOptions } from './options.ts'

type Accepted = GuardOptions['acceptUnenforceable']

/** What a run offers to its model, in the order of the ids. */
export interface Offering {
  readonly all: readonly Offered[]
  /** By name on the wire. */
  readonly byName: ReadonlyMap<string, Offered>
  readonly byId: ReadonlyMap<string, Offered>
  /** For the developer: what is visible and cannot be offered. */
  readonly warnings: readonly string[]
}

/** Gives what a view offers. Equal callers share a view, and with it this. */
export function offeringOf(view: View, accepted: Accepted): Offering {
  if (accepted !== undefined) return offer(view, view.tools, NOTHING, accepted)
  let offering = kept.get(view)
  if (!offering) kept.set(view, (offering = offer(view, view.tools, NOTHING, accepted)))
  return offering
}

/** Gives that and what a later view of the same run sees beyond it; the same, where there is nothing more. */
export function widenOffering(offering: Offering, view: View, accepted: Accepted): Offering {
  const more = view.tools.filter(({ id }) => !offering.byId.has(id))
  return more.length === 0 ? offering : offer(view, more, offering, accepted)
}

const NOTHING: Offering = { all: [], byName: new Map(), byId: new Map(), warnings: [] }
const kept = new WeakMap<View, Offering>()

function offer(view: View, tools: readonly Tool[], before: Offering, accepted: Accepted): Offering {
  const byName = new Map(before.byName)
  const warnings = [...before.warnings]
  const own: Tool[] = []
  const add = (offered: Offered): void => {
    const problem = problemOf(offered, byName, accepted)
    if (problem === undefined) byName.set(offered.name, offered)
    else warnings.push(problem)
  }
  for (const tool of tools) {
    const offered = offerImported(tool)
    if (offered) add(offered)
    else own.push(tool)
  }
  for (const offered of offerOwn(view, own, (text) => warnings.push(text))) add(offered)
  const all = [...byName.values()]
  if (before.all.length + own.length > 0) all.sort((a, b) => compareToolIds(a.id, b.id))
  return { all, byName, byId: new Map(all.map((offered) => [offered.id, offered])), warnings }
}

function problemOf(
  { id, name, isEnforceable }: Offered,
  byName: ReadonlyMap<string, Offered>,
  accepted: Accepted,
): string | undefined {
  const other = byName.get(name)
  if (other) return `"${id}" cannot be offered: on the wire it has the name of "${other.id}".`
  if (isEnforceable || accepted === true || (Array.isArray(accepted) && accepted.includes(id))) return undefined
  return `"${id}" is not offered: it is not executed here, so nothing can stop it (acceptUnenforceable).`
}

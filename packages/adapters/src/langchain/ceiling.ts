import { type Caller, ConfigError, type Tool, type View, type ViewOptions, type Visibility } from '@toolgate/core'
import { type MaybePromise, sha256Hex } from '@toolgate/core/internal'

type VisibilityContext = { readonly tools: readonly Tool[]; readonly caller: Caller }

/**
 * Gives the ids that a run may see at most: those that its view shows, and those that are only held back, as what is
 * locked or unavailable now may be open at a later step.
 */
export function ceilingOf(view: View, known: readonly string[]): readonly string[] {
  return known.filter((id) => view.has(id) || view.explain(id).outcome === 'wait')
}

/** What is kept of a ceiling in the graph's state. */
interface Sealed {
  readonly run: string
  readonly ceiling: readonly string[]
}

/** Seals the ids of a run's ceiling: each becomes a hash that differs from run to run. */
export function sealCeiling(run: string, ids: readonly string[]): Sealed {
  return { run, ceiling: ids.map((id) => sealOf(run, id)) }
}

/**
 * Returns the known ids that are within a sealed ceiling.
 *
 * Clients of LangGraph's server can write the state. What they write opens nothing that policy hides, and a ceiling
 * that cannot be read is an empty one.
 */
export function unsealCeiling({ run, ceiling }: Partial<Sealed>, known: readonly string[]): readonly string[] {
  if (typeof run !== 'string' || !Array.isArray(ceiling)) return []
  const sealed = new Set<unknown>(ceiling)
  return known.filter((id) => sealed.has(sealOf(run, id)))
}

function sealOf(run: string, id: string): string {
  return sha256Hex(`${run}\n${id}`).slice(0, SEAL_LENGTH)
}

/** 128 bits, in hex digits. */
const SEAL_LENGTH = 32

/** Gives what all of these show: each is asked, and nothing is shown that one of them leaves out. */
export function meetVisibility(...parts: readonly (Visibility | undefined)[]): Visibility | undefined {
  const given = parts.filter((part) => part !== undefined)
  if (given.length <= 1) return given[0]
  return async (context) => {
    const lists = await Promise.all(given.map((part) => idsOf(part, context)))
    const [first = new Set<string>(), ...others] = lists
    return [...first].filter((id) => others.every((ids) => ids.has(id)))
  }
}

/**
 * Gives the options of which both hold.
 *
 * @throws {ConfigError} for two different apps: a view is of one
 */
export function meetViewOptions(one: ViewOptions, other: ViewOptions): ViewOptions {
  if (one.app !== undefined && other.app !== undefined && one.app !== other.app)
    throw new ConfigError('app', `a run is of one app, and not of both "${one.app}" and "${other.app}"`)
  return {
    visibility: meetVisibility(one.visibility, other.visibility),
    activeTools: meetLists(one.activeTools, other.activeTools),
    app: other.app ?? one.app,
  }
}

function meetLists(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return one.filter((id) => other.includes(id))
}

async function idsOf(visibility: Visibility, context: VisibilityContext): Promise<ReadonlySet<string>> {
  const shown: MaybePromise<Iterable<string | Tool>> =
    typeof visibility === 'function' ? visibility(context) : visibility
  return new Set(Array.from(await shown, (one) => (typeof one === 'string' ? one : one.id)))
}

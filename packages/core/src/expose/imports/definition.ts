/** One tool as a provider's request defines it, its fields not yet checked. */
export interface ForeignDefinition {
  readonly name: unknown
  /** The name in the request, where `name` is not that. */
  readonly wireName?: string
  readonly namespace?: unknown
  readonly description?: unknown
  readonly inputSchema?: unknown
  readonly outputSchema?: unknown
  readonly strict?: unknown
  /** Fields that a tool has no place for. */
  readonly lost: Readonly<Record<string, unknown>>
  /** What its schemas could not keep, by RFC 6901 pointers into the provider's own schema. */
  readonly notes?: readonly ForeignNote[]
}

export interface ForeignNote {
  readonly path: string
  readonly feature: string
  readonly from: unknown
}

/** An entry of a list of tools that no gate can govern, such as a search that the provider runs itself. */
export interface NotAFunction {
  readonly notAFunction: string
}

/** Says what an entry is instead of a function: its type, or a field of it. */
export function notAFunction(what: unknown): NotAFunction {
  return { notAFunction: typeof what === 'string' && what !== '' ? what : 'of an unknown type' }
}

/** Reads one entry of a request's list of tools, which may define several. */
export type ReadEntry = (entry: Readonly<Record<string, unknown>>) => readonly (ForeignDefinition | NotAFunction)[]

/** Returns the fields that are not among the known ones and say something. */
export function otherFields(
  entry: Readonly<Record<string, unknown>>,
  known: readonly string[],
): Readonly<Record<string, unknown>> {
  const others = Object.entries(entry).filter(
    ([key, value]) => !known.includes(key) && value !== undefined && value !== null,
  )
  return Object.fromEntries(others)
}

import type { Fact, KeptFacts, MaybePromise } from '@toolgate/core/internal'
import { isObject, readOwnJson } from '@toolgate/values/json'
import type { AuditRecord } from '@toolgate/core/audit'
import { type KnownParts, NOTHING_KNOWN, type Operands, uncertainValue } from '@toolgate/core/policy'
import type { InputOf } from './sealed-calls.ts'

/** The known part of a call's input, in two variants. */
export interface RecordedInput {
  readonly strict: unknown
  readonly lax: unknown
}

export const UNKNOWN_INPUT: RecordedInput = {
  strict: uncertainValue(NOTHING_KNOWN, 'strict'),
  lax: uncertainValue(NOTHING_KNOWN, 'lax'),
}

/** Returns the facts of a record; `undefined` if none were recorded. */
export function factsIn({ facts }: Pick<AuditRecord, 'facts'>): KeptFacts | undefined {
  if (facts === undefined) return undefined
  try {
    const parsed: unknown = readOwnJson(facts, 'exact')
    return isObject(parsed) && isObject(parsed['input']) ? (parsed as unknown as KeptFacts) : undefined
  } catch {
    return undefined
  }
}

/** Returns the keyed hash of a text, as the audit stores it for texts that rules compare. */
export type HashOf = (text: string) => MaybePromise<string>

/** Finds the texts for hashes of operands, among the texts that conditions compare with. */
export class HashedTexts {
  readonly #texts: ReadonlyMap<string, string>
  readonly #isHashOnly: (path: string) => boolean

  /** `texts`: texts by their hashes. Absent if the key is not known. */
  constructor(operands: Operands, texts?: ReadonlyMap<string, string>) {
    this.#texts = texts ?? new Map()
    this.#isHashOnly = (path) => texts !== undefined && operands.input.get(path) === 'equality'
  }

  /** `hashOf` is absent if the key is not known. */
  static async of(operands: Operands, hashOf: HashOf | undefined): Promise<HashedTexts> {
    if (!hashOf) return new HashedTexts(operands)
    const texts = await Promise.all(Array.from(operands.texts, async (text) => [await hashOf(text), text] as const))
    return new HashedTexts(operands, new Map(texts))
  }

  /** Returns the value of a fact, if it is known well enough for the conditions. */
  valueOf(path: string, fact: Fact): { readonly value: unknown } | undefined {
    if (typeof fact !== 'string') return { value: fact[0] }
    const text = this.#texts.get(fact)
    if (text !== undefined) return { value: text }
    // The value equals none of the compared texts, so any other text gives the same result.
    return this.#isHashOnly(path) ? { value: fact } : undefined
  }
}

/** The input of a call, read from its record on demand, because most calls are judged without it. */
export class LazyInput implements RecordedInput {
  readonly #record: AuditRecord
  readonly #texts: HashedTexts
  readonly #inputOf: InputOf | undefined
  #input: RecordedInput | undefined

  /** `inputOf` is absent if whole inputs are not known. */
  constructor(record: AuditRecord, texts: HashedTexts, inputOf?: InputOf) {
    this.#record = record
    this.#texts = texts
    this.#inputOf = inputOf
  }

  get strict(): unknown {
    return this.#read().strict
  }

  get lax(): unknown {
    return this.#read().lax
  }

  #read(): RecordedInput {
    return (this.#input ??= this.#whole() ?? partlyKnown(factsIn(this.#record), this.#texts))
  }

  #whole(): RecordedInput | undefined {
    const input = this.#inputOf?.(this.#record)
    return input && { strict: input.value, lax: input.value }
  }
}

function partlyKnown(facts: KeptFacts | undefined, texts: HashedTexts): RecordedInput {
  if (!facts) return UNKNOWN_INPUT
  const known = partsOf(facts.input, texts)
  return { strict: uncertainValue(known, 'strict'), lax: uncertainValue(known, 'lax') }
}

interface Growing {
  readonly parts: Map<string, unknown>
  readonly partly: Map<string, Growing>
}

/** Returns the known parts of an object, by paths. */
export function partsOf(facts: Readonly<Record<string, Fact>>, texts: HashedTexts): KnownParts {
  const root: Growing = { parts: new Map(), partly: new Map() }
  // Shorter paths first, because a whole value includes its parts.
  for (const [path, fact] of Object.entries(facts).toSorted(([a], [b]) => a.length - b.length)) {
    const found = texts.valueOf(path, fact)
    if (found && path !== '') put(root, path.split('.'), found.value)
  }
  return root
}

function put(root: Growing, keys: readonly string[], value: unknown): void {
  let at = root
  for (const key of keys.slice(0, -1)) {
    if (at.parts.has(key)) return
    let inner = at.partly.get(key)
    if (!inner) at.partly.set(key, (inner = { parts: new Map(), partly: new Map() }))
    at = inner
  }
  const last = keys.at(-1) ?? ''
  if (!at.partly.has(last)) at.parts.set(last, value)
}

/**
 * Partly unknown values: the inputs and callers of calls that are judged again from their records.
 *
 * Each value has two variants. A condition that reads an unknown part of the `strict` variant counts against the call, and
 * of the `lax` variant for it. If both decisions are equal, the unknown parts do not matter; otherwise the decision is
 * unknown.
 */
export type Leaning = 'strict' | 'lax'

/** The last unknown part that was read. A condition clears it before each test. */
export const unknownRead: { leaning: Leaning | undefined } = { leaning: undefined }

/** Returns and clears the last unknown read, if any. */
export function takeUnknownRead(): Leaning | undefined {
  const { leaning } = unknownRead
  unknownRead.leaning = undefined
  return leaning
}

/** The known parts of a value. */
export interface KnownParts {
  /** The parts whose value is known; `undefined` is a part that is known to be absent. */
  readonly parts: ReadonlyMap<string, unknown>
  /** The objects of which only some parts are known. */
  readonly partly: ReadonlyMap<string, KnownParts>
}

export const NOTHING_KNOWN: KnownParts = { parts: new Map(), partly: new Map() }

/** Returns a value of which only these parts are known. */
export function uncertainValue(known: KnownParts, leaning: Leaning): object {
  const own = new Map<string, unknown>(known.parts)
  for (const [name, inner] of known.partly) own.set(name, uncertainValue(inner, leaning))
  return new Proxy({}, new UncertainParts(own, leaning))
}

/** Returns known parts, and notes each read of an unknown one. */
class UncertainParts implements ProxyHandler<object> {
  readonly #own: ReadonlyMap<string, unknown>
  readonly #leaning: Leaning

  constructor(own: ReadonlyMap<string, unknown>, leaning: Leaning) {
    this.#own = own
    this.#leaning = leaning
  }

  #valueOf(key: string | symbol): unknown {
    if (typeof key === 'symbol') return undefined
    if (!this.#own.has(key)) unknownRead.leaning = this.#leaning
    return this.#own.get(key)
  }

  get(target: object, key: string | symbol): unknown {
    // CEL tells objects apart by this key. No condition can name it.
    if (key === 'constructor') return Reflect.get(target, key)
    return this.#valueOf(key)
  }

  has(_target: object, key: string | symbol): boolean {
    return this.#valueOf(key) !== undefined
  }

  getOwnPropertyDescriptor(_target: object, key: string | symbol): PropertyDescriptor | undefined {
    const value = this.#valueOf(key)
    return value === undefined ? undefined : { value, configurable: true, enumerable: true, writable: false }
  }

  ownKeys(): string[] {
    unknownRead.leaning = this.#leaning
    return [...this.#own].flatMap(([key, value]) => (value === undefined ? [] : [key]))
  }
}

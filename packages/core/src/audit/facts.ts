import type { AskedCall } from '../ports/ports.ts'
import type { Redactor } from '@toolgate/values/redact'
import { hmacSha256Hex } from '@toolgate/values'
import { canonicalize, isObject } from '@toolgate/values/json'

/** A recorded part of a call: `[value]`, `[]` for an absent part, or the keyed hash of a text. Missing: unknown. */
export type Fact = readonly [value?: unknown] | string

/** The recorded parts of a call that rules read, by paths such as `order.id`. */
export interface KeptFacts {
  readonly caller?: {
    readonly roles: readonly string[]
    readonly scopes: readonly string[]
    readonly attributes: Readonly<Record<string, Fact>>
    readonly chatType?: string
  }
  readonly input: Readonly<Record<string, Fact>>
}

const MAX_VALUE = 1024
const MAX_FACTS = 16_384

/**
 * Returns what rules read of a call, as JSON, so that other rules can judge it later. Texts that are only compared for
 * equality are keyed hashes, other values are as in previews. Values with a secret and long values are left out.
 */
export function factsText(
  asked: AskedCall,
  input: unknown,
  { redact, inputKey }: { readonly redact: Redactor; readonly inputKey: Uint8Array | undefined },
): string | undefined {
  const { caller } = asked
  const operands = asked.operands()
  const facts = new Map<string, Fact>()
  for (const [path, use] of operands.input) {
    const { at, value } = walk(input, path)
    const fact = factOf(at, value, { isHashed: use === 'equality', redact, inputKey })
    if (fact !== undefined) facts.set(at, fact)
  }
  const attributes = operands.attributes.flatMap((path) => {
    const { at, value } = walk(caller.attributes ?? {}, path)
    const fact = factOf(at, value, { isHashed: false, redact, inputKey })
    return fact === undefined ? [] : [[at, fact] as const]
  })
  const { roles = [], scopes = [], chat } = caller
  const found: KeptFacts = {
    caller: {
      roles,
      scopes,
      attributes: Object.fromEntries(attributes),
      ...(chat?.type !== undefined && { chatType: chat.type }),
    },
    input: Object.fromEntries(facts),
  }
  const text = canonicalize(found)
  return text.length <= MAX_FACTS ? text : undefined
}

interface FactOptions {
  readonly isHashed: boolean
  readonly redact: Redactor
  readonly inputKey: Uint8Array | undefined
}

function factOf(path: string, value: unknown, { isHashed, redact, inputKey }: FactOptions): Fact | undefined {
  if (value === undefined) return []
  if (isHashed && typeof value === 'string') return inputKey && hashOfText(inputKey, value)
  try {
    const text = canonicalize(value)
    if (text.length > MAX_VALUE) return undefined
    // Some fields are secret because of their names.
    const name = path.slice(path.lastIndexOf('.') + 1)
    const [shown] = Object.values(redact.redactValue({ [name]: value }) as object) as [unknown]
    return canonicalize(shown) === text ? [value] : undefined
  } catch {
    return undefined
  }
}

/** Returns the keyed hash of a text that a rule compares. */
export function hashOfText(key: Uint8Array, text: string): string {
  return `hmac-sha256:${hmacSha256Hex(key, JSON.stringify(text))}`
}

/** Returns the value at a path. If the path ends early, returns the last value and its path. */
function walk(value: unknown, path: string): { readonly at: string; readonly value: unknown } {
  const done: string[] = []
  let found = value
  for (const key of path === '' ? [] : path.split('.')) {
    if (!isObject(found)) return { at: done.join('.'), value: found }
    done.push(key)
    found = Object.hasOwn(found, key) ? found[key] : undefined
  }
  return { at: done.join('.'), value: found }
}

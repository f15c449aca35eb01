import type { AskedCall } from '../ports/ports.ts'
import type { Redactor } from '@toolgate/values/redact'
import { hmacSha256Hex } from '@toolgate/values'
import { canonicalize, isObject } from '@toolgate/values/json'

/** A part of a call: `[value]`, `[]` for one that is absent, and the keyed hash of a text. Absent: it is not known. */
export type Fact = readonly [value?: unknown] | string

/** What rules read of a call. Paths such as `order.id`. */
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
 * Returns what rules read of a call, as JSON, for judging it again under others: texts that are only compared for equality as keyed
 * hashes, and other values as previews show them. A value with a secret is left out, and so is a long one.
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

/** Returns the value at a path; where it ends before, what is there and where that is. */
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

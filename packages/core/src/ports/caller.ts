import { describeUnknown, problemWithFields, type Shape, shapeOf, ToolgateError } from '@toolgate/values'
import { isPlain, toInteger, toJsonText } from '@toolgate/values/json'

/** The user or agent that a request is for. Plain JSON; every field is optional. */
export interface Caller {
  readonly user?: string | undefined
  readonly tenant?: string | undefined
  readonly roles?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
  readonly session?: string | undefined
  readonly chat?: { readonly id: string; readonly type?: string | undefined } | undefined
  readonly agent?: string | undefined
  /** The OAuth client that the user works with. */
  readonly client?: string | undefined
  /** Who acts for the user now, if somebody else does (RFC 8693 §4.1). */
  readonly actor?: string | undefined
  /** All actors, the current one first. For the audit alone: earlier actors decide nothing. */
  readonly actChain?: readonly string[] | undefined
  /** Who made the key that the caller uses, if another person did. For approvals and the audit: it decides nothing else. */
  readonly keyMadeBy?: string | undefined
  /** The makers of that key and of credentials behind it, the nearest first. For approvals. Default: `keyMadeBy`. */
  readonly makerChain?: readonly string[] | undefined
  /** Other names of the same person, such as of another login. For approvals: they decide nothing else. */
  readonly aliases?: readonly string[] | undefined
  /** The run that the caller's token is for. The gate's `runs` returns what this run may do. */
  readonly run?: string | undefined
  readonly attributes?: Readonly<Record<string, unknown>> | undefined
}

const keys = new WeakMap<Caller, string>()

/**
 * Returns a frozen copy of a caller with its key computed once, so that views are found by identity.
 *
 * @throws {ToolgateError} `caller_invalid` for an unknown field or a value of the wrong shape
 * @example
 * const vera = defineCaller({ user: 'vera', roles: ['viewer'] })
 */
export function defineCaller(caller: Caller): Caller {
  if (keys.has(caller)) return caller
  const copy: Record<string, unknown> = {}
  const given = plainObject('caller', caller)
  if (!isPlain(given)) checkOwn(given)
  for (const [field, value] of Object.entries(given)) {
    const check = CHECKS.get(field)
    if (!check) throw unknownField('caller', field, CALLER)
    if (value !== undefined) copy[field] = check(`caller.${field}`, value)
  }
  const frozen = deepFreeze(copy) as Caller
  const values = [...CHECKS.keys()].map((field) => copy[field] ?? null)
  // Only attributes may hold an integer beyond 2^53.
  keys.set(frozen, frozen.attributes === undefined ? JSON.stringify(values) : toJsonText(values))
  return frozen
}

/**
 * Returns whether a value is the very object that `defineCaller` returned.
 *
 * JSON, `structuredClone` and a spread make another object, so no request can carry a defined caller. Use this to separate
 * the host's callers from a client's claims when a framework passes on a context that a client may have filled.
 */
export function isDefinedCaller(value: unknown): value is Caller {
  return typeof value === 'object' && value !== null && keys.has(value)
}

/** Returns the key of a caller. Equal callers have equal keys; the order of their fields does not matter. */
export function callerKey(caller: Caller): string {
  return keys.get(defineCaller(caller)) as string
}

/** Returns the parts of a caller that limits count separately. */
export function callerParts({
  tenant,
  user,
  chat,
  actor,
  client,
}: Caller): Readonly<Record<'tenant' | 'user' | 'chat' | 'actor' | 'client', string | undefined>> {
  return { tenant, user, chat: chat?.id, actor, client }
}

/** Rejects inherited fields: they are not copied, so the copy would be a caller with fewer restrictions. */
function checkOwn(caller: object): void {
  for (const field of CHECKS.keys())
    if (field in caller && !Object.hasOwn(caller, field))
      throw new ToolgateError(
        'caller_invalid',
        `caller.${field} must be a field of the object itself, not of its class`,
      )
}

type CheckField = (path: string, value: unknown) => unknown

const CHECKS: ReadonlyMap<string, CheckField> = new Map<string, CheckField>([
  ['user', text],
  ['tenant', text],
  ['roles', texts],
  ['scopes', texts],
  ['session', session],
  [
    'chat',
    (path, value) => {
      const chat = plainObject(path, value)
      for (const field of Object.keys(chat)) if (!CHAT.keys.has(field)) throw unknownField(path, field, CHAT)
      const type = chat['type']
      return { id: text(`${path}.id`, chat['id']), ...(type === undefined ? {} : { type: text(`${path}.type`, type) }) }
    },
  ],
  ['agent', text],
  ['client', text],
  ['actor', text],
  ['actChain', textsInOrder],
  ['keyMadeBy', text],
  ['makerChain', textsInOrder],
  ['aliases', texts],
  ['run', session],
  ['attributes', (path, value) => json(path, plainObject(path, value))],
])

const CALLER = shapeOf<Caller>(
  {
    user: true,
    tenant: true,
    roles: true,
    scopes: true,
    session: true,
    chat: true,
    agent: true,
    client: true,
    actor: true,
    actChain: true,
    keyMadeBy: true,
    makerChain: true,
    aliases: true,
    run: true,
    attributes: true,
  },
  'field',
)
const CHAT = shapeOf<NonNullable<Caller['chat']>>({ id: true, type: true }, 'field')

function unknownField(path: string, field: string, shape: Shape): ToolgateError {
  return new ToolgateError('caller_invalid', `${path}.${field}: ${describeUnknown(field, shape)}`)
}

function text(path: string, value: unknown): string {
  if (typeof value !== 'string') throw new ToolgateError('caller_invalid', `${path} must be a string`)
  return value
}

/** Rejects an empty id: all callers without an id would share that session, and dropping it would lift its locks. */
function session(path: string, value: unknown): string {
  const id = text(path, value)
  if (id === '') throw new ToolgateError('caller_invalid', `${path} must not be empty; leave it out for no session`)
  return id
}

function texts(path: string, value: unknown): string[] {
  return textsInOrder(path, value).toSorted()
}

function textsInOrder(path: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw new ToolgateError('caller_invalid', `${path} must be a list of strings`)
  return value.map((item, i) => text(`${path}[${i}]`, item))
}

function plainObject(path: string, value: unknown): Record<string, unknown> {
  const problem = problemWithFields(value)
  if (problem !== undefined) throw new ToolgateError('caller_invalid', `${path} ${problem}`)
  return value as Record<string, unknown>
}

/** Copies plain JSON with its keys sorted, so that equal values have equal text. */
function json(path: string, value: unknown, depth = 0): unknown {
  if (depth > 32) throw new ToolgateError('caller_invalid', `${path} is nested too deeply`)
  if (Array.isArray(value)) return value.map((item, i) => json(`${path}[${i}]`, item, depth + 1))
  if (typeof value === 'object' && value !== null) {
    // A Date, a Map or a promise would become {}.
    if (Object.keys(value).length === 0 && !isPlain(value))
      throw new ToolgateError('caller_invalid', `${path} must be plain JSON`)
    const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(entries.map(([key, item]) => [key, json(`${path}.${key}`, item, depth + 1)]))
  }
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return value
  const integer = typeof value === 'bigint' ? toInteger(value) : undefined
  if (integer !== undefined) return integer
  throw new ToolgateError('caller_invalid', `${path} must be plain JSON`)
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const item of Object.values(value)) deepFreeze(item)
  }
  return value
}

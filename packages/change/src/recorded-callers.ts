import { type Caller, defineCaller } from '@toolgate/core'
import { callerKey, type KeptFacts } from '@toolgate/core/internal'
import { canonicalize } from '@toolgate/values/json'
import { type KnownParts, type Leaning, NO_OPERANDS, readCallerAs, uncertainValue } from '@toolgate/core/policy'
import { factsIn, HashedTexts, partsOf } from './recorded-facts.ts'
import type { AuditRecord } from '@toolgate/core/audit'

/** A caller, as far as records show: two callers that bound the real one. Both are equal if everything is known. */
export interface RecordedCaller {
  readonly strict: Caller
  readonly lax: Caller
  /** Shown to people and used for grouping: `vera`, `vera of acme`. */
  readonly name: string
}

type RecordedIdentity = Pick<
  AuditRecord,
  'user_id' | 'tenant' | 'agent' | 'client' | 'actor' | 'session_id' | 'chat_id' | 'facts'
>

/** Finds the callers of records: configured callers, and others of whom only the identity was recorded. */
export class RecordedCallers {
  readonly #configured: ReadonlyMap<string, readonly Caller[]>
  readonly #scopes: readonly string[]
  readonly #people: ReadonlyMap<string, readonly Caller[]>
  readonly #known = new Map<string, RecordedCaller>()

  /**
   * `scopes`: all scopes that tools may require. An unknown caller may have any of them. `people`: those who were seen, with
   * the rights of their latest token.
   */
  constructor(configured: readonly Caller[], scopes: readonly string[], people: readonly Caller[] = []) {
    this.#configured = Map.groupBy(configured, identityOf)
    this.#people = Map.groupBy(people, nameOfCaller)
    this.#scopes = scopes
  }

  /** Returns the caller of a record. Records of the same caller give the same object. */
  of(record: RecordedIdentity): RecordedCaller {
    let key = JSON.stringify([
      record.user_id,
      record.tenant,
      record.agent,
      record.client,
      record.actor,
      record.session_id,
      record.chat_id,
    ])
    const named = namedIn(record)
    const facts = record.facts === undefined || this.has(named) ? undefined : factsIn(record)?.caller
    if (facts) key += canonicalize(facts)
    let caller = this.#known.get(key)
    if (!caller) {
      caller = facts ? this.#ofFacts(named, facts) : this.ofCaller(named)
      if (this.#known.size >= MAX_CALLERS) this.#known.clear()
      this.#known.set(key, caller)
    }
    return caller
  }

  /** Returns whether a caller with this identity is configured. */
  has(caller: Caller): boolean {
    return this.#configured.has(identityOf(caller))
  }

  /** Returns a recorded caller with the rights of their latest token. `undefined`: it is nobody, or one of several. */
  personOf(named: Caller): Caller | undefined {
    if (named.user === undefined) return undefined
    const [person, ...others] = this.#people.get(nameOfCaller(named)) ?? []
    const isSole = person?.user === named.user && person.tenant === named.tenant && others.length === 0
    return isSole ? defineCaller({ ...person, ...named }) : undefined
  }

  /** Returns a caller of whom only these fields are known. */
  ofCaller(named: Caller): RecordedCaller {
    const name = nameOfCaller(named)
    const [first, ...more] = this.#configured.get(identityOf(named)) ?? []
    const person = first || named.chat ? undefined : this.personOf(named)
    if (person) return { strict: person, lax: person, name }
    // Keys of one user may have different roles, and the record does not say which key it was.
    if (!first || more.some((one) => callerKey(one) !== callerKey(first)))
      return { ...this.#uncertain(named, knownPartsOf(named, IDENTITY)), name }
    const caller = { ...first, ...named }
    if (named.chat !== undefined && named.chat.id !== first.chat?.id)
      return { ...this.#uncertain(caller, knownPartsOf(caller, FIELDS)), name }
    const known = defineCaller({ ...caller, ...(first.chat && { chat: first.chat }) })
    return { strict: known, lax: known, name }
  }

  /** Returns a caller whose roles, scopes and some attributes were recorded. */
  #ofFacts(named: Caller, { roles, scopes, attributes, chatType }: NonNullable<KeptFacts['caller']>): RecordedCaller {
    const chat = named.chat && { id: named.chat.id, ...(chatType !== undefined && { type: chatType }) }
    const caller = { ...named, roles, scopes, ...(chat && { chat }) }
    const known = knownPartsOf(caller, [...IDENTITY, 'roles', 'scopes'])
    const parts = chat ? new Map([...known.parts, ['chat', chat]]) : known.parts
    const partly = new Map([['attributes', partsOf(attributes, NO_TEXTS)]])
    return { ...this.#uncertain(caller, { parts, partly }), name: nameOfCaller(named) }
  }

  #uncertain(named: Caller, known: KnownParts): Pick<RecordedCaller, 'strict' | 'lax'> {
    const leaning = (which: Leaning): Caller => {
      const scopes = named.scopes ?? (which === 'lax' ? this.#scopes : [])
      // A separate object that equals no other caller.
      const caller = defineCaller({ ...named, scopes, keyMadeBy: `?${which}` })
      readCallerAs(caller, uncertainValue(known, which))
      return caller
    }
    return { strict: leaning('strict'), lax: leaning('lax') }
  }
}

const NO_TEXTS = new HashedTexts(NO_OPERANDS)
const MAX_CALLERS = 100_000

function namedIn(record: RecordedIdentity): Caller {
  return {
    ...(record.user_id !== undefined && { user: record.user_id }),
    ...(record.tenant !== undefined && { tenant: record.tenant }),
    ...(record.agent !== undefined && { agent: record.agent }),
    ...(record.client !== undefined && { client: record.client }),
    ...(record.actor !== undefined && { actor: record.actor }),
    ...(record.session_id !== undefined && { session: record.session_id }),
    ...(record.chat_id !== undefined && { chat: { id: record.chat_id } }),
  }
}

/** The fields of a caller that do not depend on the session or the chat. */
function identityOf({ user, tenant, agent, client, actor }: Caller): string {
  return JSON.stringify([user, tenant, agent, client, actor])
}

/** Returns how a caller is named for people: by user or agent, and tenant. */
export function nameOfCaller({ user, agent, tenant }: Caller): string {
  const name = user ?? agent ?? 'anonymous'
  return tenant === undefined ? name : `${name} of ${tenant}`
}

/** The fields of a caller that every record has. */
const IDENTITY = ['user', 'tenant', 'agent', 'client', 'actor', 'session'] as const
const FIELDS = [...IDENTITY, 'roles', 'scopes', 'attributes'] as const

/** Records have the caller's identity and session, but no roles, scopes, attributes or chat type. */
function knownPartsOf(caller: Caller, fields: readonly (typeof FIELDS)[number][]): KnownParts {
  const chat = caller.chat && { parts: new Map([['id', caller.chat.id]]), partly: new Map() }
  return {
    parts: new Map<string, unknown>([
      ...fields.map((field) => [field, caller[field] ?? EMPTY.get(field)] as const),
      ...(chat ? [] : [['chat', undefined] as const]),
    ]),
    partly: new Map(chat ? [['chat', chat]] : []),
  }
}

/** The values that conditions read for absent roles and scopes. */
const EMPTY: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['roles', []],
  ['scopes', []],
  ['attributes', {}],
])

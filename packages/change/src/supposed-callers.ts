import { type KnownParts, type Leaning, readCallerAs, uncertainValue } from '@toolgate/core/policy'
import { type Caller, defineCaller } from '@toolgate/core'
import { checkShape, type Shape, shapeOf } from '@toolgate/values'
import { type CallerReads, type Literal, READ_FIELDS, type ReadField } from './caller-reads.ts'
import { toJsonText } from '@toolgate/values/json'

/** A kind of callers besides the known ones. They lack each field that is not named. */
export interface OtherCallers {
  readonly fields: Readonly<Partial<Record<ReadField, 'always' | 'maybe'>>>
  /** The tenant of all callers of this kind. */
  readonly tenant?: string | undefined
  /** Returns whether a caller of this kind may have this user name. Default: any. */
  readonly isUser?: ((user: string) => boolean) | undefined
  /** A user name of this kind that no rule names. */
  readonly anyUser?: string | undefined
}

/** Callers about whom nothing is known: each field may have any value. */
export const ANYBODY: OtherCallers = {
  fields: Object.fromEntries(READ_FIELDS.map((field) => [field, 'maybe' as const])),
}

const OTHERS = shapeOf<OtherCallers>({ fields: true, tenant: true, isUser: true, anyUser: true })
const FIELDS: Shape = { keys: new Set(READ_FIELDS), noun: 'field' }

/** Checks the callers. @throws {ConfigError} for unknown keys */
export function checkOthers(path: string, others: OtherCallers): void {
  checkShape(path, others, OTHERS)
  checkShape(`${path}.fields`, others.fields, FIELDS)
}

/** A set of partly known callers: two callers that bound them, and examples. */
export interface SupposedCaller {
  readonly strict: Caller
  readonly lax: Caller
  /** Whether their scopes are known. If not, the lax caller has all scopes that matter. */
  readonly hasKnownScopes: boolean
  readonly examples: readonly Caller[]
}

interface SupposedCallers {
  readonly callers: readonly SupposedCaller[]
  /** The fields that stay unknown, because callers differ in them in too many ways, or in ways that cannot be listed. */
  readonly unknown: readonly string[]
}

type CallerFields = Readonly<Record<string, unknown>>

const MAX_CALLERS = 1024
const MAX_ENTRIES = 9
/** Contains a private-use character, so that no rule names it. */
const ANY = 'anyone\u{f8ff}'
const ATTRIBUTE = 'attributes.'

/** Returns a set of completely unknown callers. `needed`: all scopes that tools require. */
export function anyCaller(needed: readonly string[]): SupposedCaller {
  return suppose({}, new Set(), needed, ANYBODY)
}

/**
 * Returns one set of callers for each kind that conditions with these reads can tell apart. `needed`: the scopes that tools
 * require.
 */
export function supposedCallers(reads: CallerReads, needed: readonly string[], others: OtherCallers): SupposedCallers {
  const { domains, unknown } = domainsOf(reads, needed, others)
  let kept = domains
  while (kept.reduce((count, { ways }) => count * ways.length, 1) > MAX_CALLERS) {
    const widest = kept.reduce((one, other) => (other.ways.length > one.ways.length ? other : one))
    unknown.push(widest.path)
    kept = kept.filter((one) => one !== widest)
  }
  const all = kept.reduce<readonly CallerFields[]>(
    (fields, { path, ways }) => fields.flatMap((one) => ways.map((way) => ({ ...one, [path]: way }))),
    [{}],
  )
  const known = new Set(kept.map(({ path }) => path))
  return { callers: all.map((fields) => suppose(fields, known, needed, others)), unknown }
}

function domainsOf(reads: CallerReads, needed: readonly string[], others: OtherCallers) {
  const domains: { readonly path: string; readonly ways: readonly unknown[] }[] = []
  const unknown: string[] = []
  const add = (path: string, ways: readonly unknown[] | undefined) => {
    if (ways) domains.push({ path, ways })
    else unknown.push(path)
  }
  for (const field of READ_FIELDS) {
    const has = others.fields[field]
    const isRead = [...reads.keys()].some((path) => path === field || path.startsWith(`${field}.`))
    if (!has) add(field, [undefined])
    else if (!isRead && (field !== 'scopes' || needed.length === 0)) continue
    else if (field === 'scopes') add(field, subsetsOf(reads, field, needed))
    else if (field === 'roles') add(field, subsetsOf(reads, field, []))
    else if (field === 'chat') add(field, chatsOf(reads, has))
    else if (field === 'attributes') for (const path of attributesIn(reads)) add(path, attributesOf(reads, path))
    else add(field, textsOf(reads, field, has, others))
  }
  return { domains, unknown }
}

function subsetsOf(reads: CallerReads, field: string, needed: readonly string[]): readonly string[][] | undefined {
  const read = reads.has(field) ? reads.get(field) : new Set<Literal>()
  if (!read) return undefined
  const entries = [...new Set([...needed, ...read])].map(String)
  if (entries.length > MAX_ENTRIES) return undefined
  return Array.from({ length: 2 ** entries.length }, (_, bits) => entries.filter((__, at) => (bits & (1 << at)) !== 0))
}

function textsOf(
  reads: CallerReads,
  field: ReadField,
  has: 'always' | 'maybe',
  { tenant, isUser = () => true, anyUser = ANY }: OtherCallers,
): readonly (string | undefined)[] | undefined {
  if (field === 'tenant' && tenant !== undefined) return [tenant]
  const read = reads.get(field)
  if (!read) return undefined
  const isUserField = field === 'user'
  const named = [...read].filter((one) => typeof one === 'string' && (field !== 'session' || one !== ''))
  const texts = (named as string[]).filter((text) => !isUserField || isUser(text))
  return [...(has === 'maybe' ? [undefined] : []), ...texts, isUserField ? anyUser : ANY]
}

function chatsOf(reads: CallerReads, has: 'always' | 'maybe'): readonly unknown[] | undefined {
  const [ids, types] = [
    reads.has('chat.id') ? reads.get('chat.id') : NONE,
    reads.has('chat.type') ? reads.get('chat.type') : NONE,
  ]
  if ((reads.has('chat') && !reads.get('chat')) || !ids || !types) return undefined
  const chats = [...ids, ANY].flatMap((id) => [{ id }, ...[...types, ANY].map((type) => ({ id, type }))])
  return has === 'maybe' ? [undefined, ...chats] : chats
}

const NONE: ReadonlySet<Literal> = new Set()

/** Attributes within attributes count as part of the outer one. */
function attributesIn(reads: CallerReads): readonly string[] {
  const paths = [...reads.keys()].filter((path) => path.startsWith(ATTRIBUTE))
  return [...new Set(paths.map((path) => path.split('.').slice(0, 2).join('.')))]
}

function attributesOf(reads: CallerReads, path: string): readonly unknown[] | undefined {
  const isWhole = reads.has('attributes') && !reads.get('attributes')
  const read = isWhole ? undefined : reads.get(path)
  const isDeep = [...reads.keys()].some((one) => one.startsWith(`${path}.`))
  return read && !isDeep ? [undefined, ...read, ANY] : undefined
}

let count = 0

function suppose(
  fields: CallerFields,
  known: ReadonlySet<string>,
  needed: readonly string[],
  others: OtherCallers,
): SupposedCaller {
  const attributes = Object.entries(fields).flatMap(([path, value]) =>
    path.startsWith(ATTRIBUTE) ? [[path.slice(ATTRIBUTE.length), value] as const] : [],
  )
  const own = Object.entries(fields).filter(([path, value]) => !path.startsWith(ATTRIBUTE) && value !== undefined)
  const present = attributes.filter(([, value]) => value !== undefined)
  const hasKnownScopes = known.has('scopes')
  const base = {
    ...Object.fromEntries(own),
    ...(hasKnownScopes ? {} : { scopes: needed }),
    ...(present.length > 0 && { attributes: Object.fromEntries(present) }),
  }
  const parts = knownParts(fields, known, new Map(attributes))
  const leaning = (which: Leaning): Caller => {
    // A separate object that equals no other caller.
    const caller = defineCaller({ ...base, keyMadeBy: `?${which} ${++count}` })
    readCallerAs(caller, uncertainValue(parts, which))
    return caller
  }
  return {
    strict: leaning('strict'),
    lax: leaning('lax'),
    hasKnownScopes,
    examples: examplesOf(base, known, others),
  }
}

function knownParts(
  fields: CallerFields,
  known: ReadonlySet<string>,
  attributes: ReadonlyMap<string, unknown>,
): KnownParts {
  const parts = new Map<string, unknown>()
  for (const field of READ_FIELDS)
    if (known.has(field))
      parts.set(field, fields[field] ?? (field === 'attributes' ? {} : LISTS.has(field) ? [] : undefined))
  const partly = parts.has('attributes') ? [] : [['attributes', { parts: attributes, partly: new Map() }] as const]
  return { parts, partly: new Map(partly) }
}

const LISTS: ReadonlySet<string> = new Set(['roles', 'scopes'])
const TEXTS = ['user', 'tenant', 'session', 'agent', 'client', 'actor'] as const

/** Unknown fields are absent, or have a text that no rule names. */
function examplesOf(
  base: CallerFields,
  known: ReadonlySet<string>,
  { fields, tenant, anyUser = ANY }: OtherCallers,
): readonly Caller[] {
  const fill = (isAsked: (field: ReadField) => boolean) =>
    TEXTS.flatMap((field) =>
      known.has(field) || !isAsked(field)
        ? []
        : [[field, field === 'user' ? anyUser : field === 'tenant' ? (tenant ?? ANY) : ANY] as const],
    )
  const least = defineCaller({ ...Object.fromEntries(fill((field) => fields[field] === 'always')), ...base })
  const most = defineCaller({ ...Object.fromEntries(fill((field) => fields[field] !== undefined)), ...base })
  return [least, most]
}

/** Returns a supposed caller in words, such as `a supposed caller: user vera, roles viewer`. */
export function nameOfSupposed({ roles = [], scopes = [], chat, attributes, keyMadeBy: _, ...texts }: Caller): string {
  const list = (what: string, entries: readonly string[]) =>
    entries.length > 0 ? [`${what} ${entries.join(', ')}`] : what === 'roles' ? ['no roles'] : []
  const parts = [
    ...Object.entries(texts).map(([field, value]) => `${field} ${String(value).replace(ANY, '(any other)')}`),
    ...list('roles', roles),
    ...list('scopes', scopes),
    ...(chat ? [`chat ${JSON.stringify(chat).replaceAll(ANY, '(any other)')}`] : []),
    ...(attributes ? [`attributes ${toJsonText(attributes).replaceAll(ANY, '(any other)')}`] : []),
  ]
  return `a supposed caller: ${parts.join('; ')}`
}

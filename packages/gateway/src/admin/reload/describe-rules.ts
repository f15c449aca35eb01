import { isObject, type JsonObject, readOwnJson } from '@toolgate/values/json'
import type { RuleChange } from '../../model/reload.ts'

const MARKS = { added: '+', removed: '-', changed: '~' } as const

/** A clause as it is written: where it is, what it is called, and its fields. */
interface Clause {
  /** Such as `baseline: deny`. */
  readonly of: string
  readonly title: string
  readonly fields: ReadonlyMap<string, string>
}

/**
 * Returns changes of rules in words: a line for each, and one for each field of a clause. A clause that is removed and added
 * with the same `id`, or else the same `match`, has changed: what differs is shown.
 */
export function describeChanges(changes: readonly RuleChange[]): readonly string[] {
  const clauses = new Map(changes.map((change) => [change, toClause(change)]))
  const rest = new Set(changes)
  return changes.flatMap((change) => {
    if (!rest.delete(change)) return []
    const clause = clauses.get(change)
    const { section, what, name, fields = [] } = change
    if (!clause) return [`${MARKS[what]} ${section}: ${name}${fields.length > 0 ? ` (${fields.join(', ')})` : ''}`]
    const other = [...rest].find((one) => one.what !== what && isSame(clauses.get(one), clause))
    if (!other) return [`${MARKS[what]} ${headOf(clause)}`, ...linesOf(clause)]
    rest.delete(other)
    const [before, after] = what === 'removed' ? [change, other] : [other, change]
    return [`~ ${headOf(clause)}`, ...difference(clauses.get(before), clauses.get(after))]
  })
}

/** Returns the clause of a change; `undefined` for all other changes, and for a clause that is a selector alone. */
function toClause({ section, name }: RuleChange): Clause | undefined {
  const [, of = '', json = '', number = ''] =
    (section === 'policy' && /^(.*?: (?:allow|deny|ask)): (\{.*\})( #\d+)?$/s.exec(name)) || []
  const written = parseObject(json)
  if (!written) return undefined
  const { id, match, ...more } = written
  const fields = Object.entries({ ...(id !== undefined && { match }), ...more })
  const title = id === undefined ? toText(match) : toText(id)
  return { of, title: `${title}${number}`, fields: new Map(fields.map(([key, value]) => [key, toText(value)])) }
}

/** A text that is redacted need not be JSON. */
function parseObject(json: string): JsonObject | undefined {
  try {
    const value: unknown = readOwnJson(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A value takes one line. */
function toText(value: unknown): string {
  if (Array.isArray(value)) return value.map(toText).join(', ')
  return typeof value === 'string' && !/[\u0000-\u001f\u2028\u2029]/.test(value) ? value : JSON.stringify(value)
}

function isSame(a: Clause | undefined, b: Clause): boolean {
  return a?.of === b.of && a.title === b.title
}

function headOf({ of, title }: Clause): string {
  return `policy: ${of}: ${title}`
}

function linesOf({ fields }: Clause): readonly string[] {
  return [...fields].map(([key, text]) => `    ${key}: ${text}`)
}

function difference(before: Clause | undefined, after: Clause | undefined): readonly string[] {
  const only = (one: Clause | undefined, other: Clause | undefined, mark: string) =>
    [...(one?.fields ?? [])].flatMap(([key, text]) =>
      other?.fields.get(key) === text ? [] : [`  ${mark} ${key}: ${text}`],
    )
  return [...only(before, after, '-'), ...only(after, before, '+')]
}

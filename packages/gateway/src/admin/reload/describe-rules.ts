import { isObject, type JsonObject, readOwnJson } from '@toolgate/values/json'
import type { RuleChange } from '../../model/reload.ts'

const MARKS = { added: '+', removed: '-', changed: '~' } as const

/** A written clause: its place, its name and its fields. */
interface WrittenClause {
  /** The policy and the kind, such as `baseline: deny`. */
  readonly of: string
  readonly title: string
  readonly fields: ReadonlyMap<string, string>
}

/**
 * Returns changes of rules as text: a line for each change, and one for each field of a clause. If a clause was removed
 * and one with the same `id`, or else the same `match`, was added, it counts as changed, and only the differences are
 * shown.
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

/** Returns the clause of a change; `undefined` for all other changes, and for a clause that is only a selector. */
function toClause({ section, name }: RuleChange): WrittenClause | undefined {
  const [, of = '', json = '', number = ''] =
    (section === 'policy' && /^(.*?: (?:allow|deny|ask)): (\{.*\})( #\d+)?$/s.exec(name)) || []
  const written = parseObject(json)
  if (!written) return undefined
  const { id, match, ...more } = written
  const fields = Object.entries({ ...(id !== undefined && { match }), ...more })
  const title = id === undefined ? toText(match) : toText(id)
  return { of, title: `${title}${number}`, fields: new Map(fields.map(([key, value]) => [key, toText(value)])) }
}

/** Parses a text, which may not be JSON after redaction. */
function parseObject(json: string): JsonObject | undefined {
  try {
    const value: unknown = readOwnJson(json)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns a value as text on one line. */
function toText(value: unknown): string {
  if (Array.isArray(value)) return value.map(toText).join(', ')
  return typeof value === 'string' && !/[\u0000-\u001f\u2028\u2029]/.test(value) ? value : JSON.stringify(value)
}

function isSame(a: WrittenClause | undefined, b: WrittenClause): boolean {
  return a?.of === b.of && a.title === b.title
}

function headOf({ of, title }: WrittenClause): string {
  return `policy: ${of}: ${title}`
}

function linesOf({ fields }: WrittenClause): readonly string[] {
  return [...fields].map(([key, text]) => `    ${key}: ${text}`)
}

function difference(before: WrittenClause | undefined, after: WrittenClause | undefined): readonly string[] {
  const only = (one: WrittenClause | undefined, other: WrittenClause | undefined, mark: string) =>
    [...(one?.fields ?? [])].flatMap(([key, text]) =>
      other?.fields.get(key) === text ? [] : [`  ${mark} ${key}: ${text}`],
    )
  return [...only(before, after, '-'), ...only(after, before, '+')]
}

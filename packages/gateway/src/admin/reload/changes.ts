import type { RuleChange } from '../../model/reload.ts'
import { isDeepStrictEqual } from 'node:util'
import { toComparable } from '../../config/comparable.ts'
import type { CallerConfig } from '../../config/config.ts'
import type { Revision } from '../../auth/revision.ts'

type NamedSettings = ReadonlyMap<string, unknown>

/** Returns the differences between two revisions, in the order of the sections. */
export function findChanges(before: Revision, after: Revision): readonly RuleChange[] {
  const compare = (section: RuleChange['section'], of: (revision: Revision) => NamedSettings) =>
    compareNamed(section, of(before), of(after))
  return [
    ...compare('servers', ({ servers }) => byName(servers, toComparable)),
    ...compare('callers', ({ callers }) => callersByName(callers)),
    ...compare('groups', ({ groups }) => byName(groups)),
    ...compare('apps', ({ apps = [] }) => byName(apps)),
    ...compare('aliases', ({ aliases = {} }) => new Map(Object.entries(aliases))),
    ...compare('labels', ({ labels = {} }) => new Map(Object.entries(labels))),
    ...compare('limits', ({ limits }) => byText(limits, (limit) => limit)),
    ...compare('grants', ({ grants = {} }) => new Map(Object.entries(grants))),
    ...compare('approvals', ({ asking }) => askingByName(asking)),
    ...compare('policy', ({ policy }) => clausesOf(policy)),
  ]
}

function compareNamed(
  section: RuleChange['section'],
  before: NamedSettings,
  after: NamedSettings,
): readonly RuleChange[] {
  const changes: RuleChange[] = []
  for (const [name, value] of before) {
    if (!after.has(name)) changes.push({ section, what: 'removed', name })
    else if (!isDeepStrictEqual(value, after.get(name)))
      changes.push({ section, what: 'changed', name, fields: fieldsThatDiffer(value, after.get(name)) })
  }
  for (const name of after.keys()) if (!before.has(name)) changes.push({ section, what: 'added', name })
  return changes
}

function fieldsThatDiffer(before: unknown, after: unknown): readonly string[] {
  if (typeof before !== 'object' || typeof after !== 'object' || !before || !after) return []
  const [old, now] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  return [...new Set([...old.keys(), ...now.keys()])].filter((key) => !isDeepStrictEqual(old.get(key), now.get(key)))
}

function byName<One extends { readonly name: string }>(
  list: readonly One[],
  toValue: (one: One) => object = (one) => one,
): NamedSettings {
  return new Map(list.map((one) => [one.name, toValue(one)]))
}

/** Returns the receivers of notifications by name, and how long calls wait. */
function askingByName({ notify = [], wait }: Revision['asking']): NamedSettings {
  const receivers = notify.map((one) => [`notify ${one.name}`, one] as const)
  return new Map<string, unknown>([...receivers, ...(wait ? [['wait', wait] as const] : [])])
}

/** Returns callers by name. Several keys of one user are numbered in the order of the file. */
function callersByName(callers: readonly CallerConfig[]): NamedSettings {
  const named = new Map<string, unknown>()
  for (const { for: use, caller, keyHash, ...rest } of callers) {
    const { demoKey: _, ...shown } = rest
    const base = `${caller.user ?? caller.agent ?? 'anonymous'} (${use})`
    let name = base
    for (let n = 2; named.has(name); n++) name = `${base} #${n}`
    named.set(name, { ...caller, ...shown, key: Buffer.from(keyHash).toString('hex') })
  }
  return named
}

/** Returns entries by their text. Equal entries are numbered. */
function byText(list: readonly unknown[], toValue: (entry: unknown) => unknown): NamedSettings {
  const named = new Map<string, unknown>()
  for (const entry of list) {
    const text = typeof entry === 'string' ? entry : JSON.stringify(toValue(entry))
    let name = text
    for (let n = 2; named.has(name); n++) name = `${text} #${n}`
    named.set(name, true)
  }
  return named
}

/**
 * Returns clauses by policy, kind and text. A clause that only moves does not count as changed, as the order has no
 * meaning.
 */
function clausesOf(policies: Revision['policy']): NamedSettings {
  const named = new Map<string, unknown>()
  for (const [i, { name = `policy[${i}]`, ...lists }] of policies.entries())
    for (const [kind, list] of Object.entries(lists) as readonly (readonly [string, unknown])[]) {
      const entries = Array.isArray(list) ? (list as readonly unknown[]) : [list]
      // An empty `allow` allows nothing, but an absent one allows everything.
      if (entries.length === 0) named.set(`${name}: ${kind}: nothing`, true)
      for (const text of byText(entries, (entry) => entry).keys()) named.set(`${name}: ${kind}: ${text}`, true)
    }
  return named
}

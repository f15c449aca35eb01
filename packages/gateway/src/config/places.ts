import { ConfigError } from '@toolgate/core'
import { type ConfigPath, formatPath } from './problems.ts'
import type { ConfigPlace } from '../model/config-place.ts'
import type { Source, SourceNode } from './source.ts'

/**
 * The places of policies, their lists and their clauses, by the paths that reasons use, such as `policy[0].deny[1]`. It
 * also has the place of each `compare`.
 */
export type ConfigPlaces = ReadonlyMap<string, ConfigPlace>

/** The `policy` section as it is written, with the file and the line in which it begins. */
export interface PolicySource {
  readonly file: string
  readonly line: number
  readonly text: string
  /** Present if a person restored this policy: its revision, and the policy of the file that it replaces. */
  readonly restored?: { readonly revision: number; readonly replaces: string }
}

/**
 * Returns the text of a file with another `policy` section, which begins at the same line as its own.
 *
 * @throws {ConfigError} if the text has no such section
 */
export function replaceSection(text: string, own: PolicySource | undefined, policy: string): string {
  if (!own) throw new ConfigError('policy', 'does not have lines of its own in the file, so nothing can take its place')
  const lines = text.split('\n')
  const written = own.restored?.replaces ?? own.text
  const [start, count] = [own.line - 1, written.split('\n').length]
  if (lines.slice(start, start + count).join('\n') !== written)
    throw new ConfigError('policy', 'is not in the file as it is in force; reload the file first')
  return [...lines.slice(0, start), policy, ...lines.slice(start + count)].join('\n')
}

/**
 * Returns the `policy` section as it is written; `undefined` if it shares a line with another section. People who may read
 * or restore a policy must get nothing else of the file.
 */
export function findPolicySource(source: Source, text: string): PolicySource | undefined {
  const place = source.placeOf(['policy'])
  if (!place) return undefined
  const { file, line } = place
  const lines = text.split('\n')
  const keys = [...(source.root?.entries?.keys() ?? [])].flatMap((key) => source.placeOf([key]) ?? [])
  const after = keys.filter((one) => one.line > line).toSorted((a, b) => a.line - b.line || a.column - b.column)
  const [next] = after
  const isShared = keys.filter((one) => one.line === line).length > 1
  const isOwn = [place, ...(next ? [next] : [])].every((one) => beginsLine(lines, one))
  if (isShared || !isOwn) return undefined
  return { file, line, text: lines.slice(line - 1, (next?.line ?? lines.length + 1) - 1).join('\n') }
}

/** Whether nothing but the brace of the whole file is before a key in its line. */
function beginsLine(lines: readonly string[], { line, column }: ConfigPlace): boolean {
  return ['', '{'].includes((lines[line - 1] ?? '').slice(0, column - 1).trim())
}

/** Returns the places of the policies of the gateway and of its apps. */
export function findPlaces(source: Source): ConfigPlaces {
  const places = new Map<string, ConfigPlace>()
  const add = (text: string, at: ConfigPath) => {
    const place = source.placeOf(at)
    if (place) places.set(text, place)
    return source.get(at)
  }
  const addPolicies = (text: string, at: ConfigPath) => {
    for (const i of indexes(source.get(at))) {
      const [policy, policyAt] = [`${text}[${i}]`, [...at, i]]
      for (const list of add(policy, policyAt)?.entries?.keys() ?? []) {
        const [lists, listAt] = [`${policy}.${list}`, [...policyAt, list]]
        for (const j of indexes(add(lists, listAt))) add(`${lists}[${j}]`, [...listAt, j])
      }
    }
  }
  addPolicies('policy', ['policy'])
  // Core writes the paths of an app in this form.
  for (const name of source.get(['apps'])?.entries?.keys() ?? [])
    addPolicies(`apps.${name}.policy`, ['apps', name, 'policy'])
  for (const name of source.get(['servers'])?.entries?.keys() ?? [])
    for (const pattern of source.get(['servers', name, 'tools'])?.entries?.keys() ?? []) {
      const at = ['servers', name, 'tools', pattern, 'compare']
      add(formatPath(at), at)
    }
  return places
}

function indexes(node: SourceNode | undefined): Iterable<number> {
  return node?.items?.keys() ?? []
}

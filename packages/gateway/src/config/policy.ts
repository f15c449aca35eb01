import { ConfigError, lint, type Policy } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { parsePolicies } from '@toolgate/core/policy'
import { didYouMean } from '@toolgate/values'
import type * as z from 'zod'
import type { ConfigPath } from './problems.ts'
import { type CheckPolicy, type Reading, reportIn } from './reading.ts'

/** Returns the check of one limit or cap: of its selector, and that its text is a single entry. */
export function entryCheck<Entry>(
  { groupNames }: Reading,
  toLists: (entry: Entry) => Pick<Parameters<typeof lint>[0], 'limits' | 'concurrency'>,
): (entry: Entry, ctx: z.RefinementCtx) => void {
  const groups = new Map(groupNames.map((name) => [name, { tools: [] }]))
  return (entry, ctx) => {
    // Zod also calls checks for an entry of the wrong shape.
    if (ctx.issues.length > 0) return
    for (const { code, text } of lint({ tools: [], groups, ...toLists(entry) }))
      // The servers' tools are not known yet.
      if (code !== 'selector_unmatched') reportIn(ctx, typeof entry === 'string' ? [] : ['match'], text, false)
  }
}

/** Checks one selector outside of a policy, such as a group's. */
export function checkSelector(reading: Reading, at: ConfigPath, selector: string): void {
  for (const { message } of reading.checkPolicy([{ deny: [selector] }], reading.groupNames))
    reading.source.report(at, message)
}

/** Checks policies with core, which stops at its first problem. */
export const checkPolicy: CheckPolicy = (policies, groupNames) => {
  const groups = parseGroups(new Map(groupNames.map((name) => [name, { tools: [] }])))
  try {
    parsePolicies(policies as readonly Policy[], groups.selectors)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return [{ path: error.path, message: toMessage(error), offset: error.offset }]
  }
}

/** Removes the path and the character offset, which line and column already state. */
function toMessage({ path, message }: ConfigError): string {
  const text = message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
  return withNearest(text.replace(/ at character \d+ of ".*"$/s, ''))
}

/** The fields of `caller` and `tool` in conditions. */
const FIELDS =
  'user tenant roles scopes session chat type agent client actor attributes id namespace name category tags requiredScopes'
const VARIABLES = ['caller', 'tool', 'input', 'run']

function withNearest(problem: string): string {
  const [, kind, word] = /^(No such key|Unknown variable): (\w+)$/.exec(problem) ?? []
  if (kind === undefined || word === undefined) return problem
  if (kind === 'No such key') return `no such field "${word}"${didYouMean(word, FIELDS.split(' '))}`
  if (word === 'input') return 'found "input", which is known only to a condition of "input:"'
  return `no such variable "${word}"${didYouMean(word, VARIABLES)}`
}

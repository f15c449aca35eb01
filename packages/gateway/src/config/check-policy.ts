import { ConfigError, type Policy } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { didYouMean, parsePolicies } from '@toolgate/core/internal'
import type { CheckPolicy } from './reading.ts'

/** Asks core whether policies can be used. It stops at its first problem. */
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

/** The path and the character are told as line and column instead. */
function toMessage({ path, message }: ConfigError): string {
  const text = message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message
  return withNearest(text.replace(/ at character \d+ of ".*"$/s, ''))
}

/** The fields of `caller` and `tool` that a condition may ask for. */
const FIELDS =
  'user tenant roles scopes session chat type agent attributes id namespace name category tags requiredScopes'
const VARIABLES = ['caller', 'tool', 'input']

function withNearest(problem: string): string {
  const [, kind, word] = /^(No such key|Unknown variable): (\w+)$/.exec(problem) ?? []
  if (kind === undefined || word === undefined) return problem
  if (kind === 'No such key') return `no such field "${word}"${didYouMean(word, FIELDS.split(' '))}`
  if (word === 'input') return 'found "input", which is known only to a condition of "input:"'
  return `no such variable "${word}"${didYouMean(word, VARIABLES)}`
}

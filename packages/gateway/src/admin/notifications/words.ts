import type { Approval } from '@toolgate/core'
import type { Revision } from '../../auth/revision.ts'

const MAX_WHY_CHARS = 500
const NO_MESSAGE = 'A rule asks for approval of it.'

/** Returns the messages of the rules that ask, as their authors wrote them, the longest first. */
export function messagesOf({ policy, apps = [] }: Pick<Revision, 'policy' | 'apps'>): readonly string[] {
  const clauses = [...policy, ...apps.flatMap((app) => app.policy)].flatMap(({ ask = [] }) => ask)
  const messages = clauses.flatMap((clause) => (typeof clause === 'string' ? [] : (clause.message ?? [])))
  return [...new Set(messages)].toSorted((a, b) => b.length - a.length)
}

/**
 * Returns why a person is asked: only what authors wrote. The reason of an approval also has the text of the rule and
 * values of the input, which do not leave in a message.
 */
export function whyOf({ why = '' }: Pick<Approval, 'why'>, messages: readonly string[]): string {
  const found: { readonly at: number; readonly message: string }[] = []
  let rest = why
  for (const message of messages) {
    const at = rest.indexOf(message)
    if (at === -1) continue
    found.push({ at, message })
    // A shorter message inside this one is not another reason.
    rest = rest.slice(0, at) + ' '.repeat(message.length) + rest.slice(at + message.length)
  }
  const text = found
    .toSorted((a, b) => a.at - b.at)
    .map(({ message }) => message)
    .join(' ')
  return text.slice(0, MAX_WHY_CHARS).toWellFormed() || NO_MESSAGE
}

import { readRecords } from '@toolgate/change'
import { isOwnTool } from '@toolgate/core/tools'
import type { Caller } from '@toolgate/core'
import { KEY_ISSUER, type People, toCaller } from '../../auth/people.ts'
import { maySee } from '../http/callers.ts'
import type { Heart } from '../../heart/heart.ts'
import { withRules } from '../../auth/revision.ts'
import { ChangeThread } from './change-thread.ts'
import type { ThreadQuestions, RecordsQuery } from './questions.ts'

/** Returns the service that answers questions in a separate thread, until it is closed. */
export function openQuestions(heart: Heart): ThreadQuestions & { close(): Promise<void> | void } {
  const { config, revisions, redact, clock, gate, host } = heart
  const { audit } = heart.stores
  const { reading = {} } = host
  const thread = new ChangeThread()
  return {
    close: () => thread.close(),
    ask(question, { person, signal }) {
      const situation = {
        config: withRules(config, revisions.current),
        people: signedIn(heart.door.people, person),
        reading: { ...reading, env: { ...(reading.env ?? process.env) } },
        secrets: redact.secrets(),
        nowMs: clock.wallMs(),
      }
      const of = {
        situation,
        items: [...gate.catalog.snapshot(), ...gate.catalog.items()].filter((tool) => !isOwnTool(tool)),
        records: (query: RecordsQuery) => readRecords(audit, query, (record) => maySee(person, record)),
        hashOf: audit.hashText,
      }
      return thread.ask(question, of, signal)
    },
  }
}

/** The maximum number of people that a question knows, the latest first. They are copied in one turn. */
const MAX_PEOPLE = 10_000

/** Returns the people who signed in, with the rights of their latest token. */
function signedIn(people: Pick<People, 'list'>, person: Caller): readonly Caller[] {
  const seen = people.list().filter((one) => one.issuer !== KEY_ISSUER && maySee(person, one))
  const latest = seen.length > MAX_PEOPLE ? seen.toSorted((a, b) => b.lastSeenAt - a.lastSeenAt) : seen
  return latest.slice(0, MAX_PEOPLE).map(toCaller)
}

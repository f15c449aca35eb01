import { readRecords } from '@toolgate/change'
import { isOwnTool } from '@toolgate/core/internal'
import { maySee } from '../admin/http/callers.ts'
import type { GateParts, GatewayBase } from './gate-parts.ts'
import { withRules } from '../auth/revision.ts'
import { ChangeThread } from '../admin/change/change-thread.ts'
import type { Questions, Reading, RecordsQuery } from '../admin/change/questions.ts'

/** Returns what answers questions in a thread of its own, until the gateway closes. */
export function openQuestions(base: GatewayBase, { gate, audit }: GateParts, reading: Reading = {}): Questions {
  const { config, revisions, redact, clock, lifecycle } = base
  const thread = new ChangeThread()
  lifecycle.onClose(() => thread.close())
  return {
    ask(question, { person, signal }) {
      const situation = {
        config: withRules(config, revisions.current),
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

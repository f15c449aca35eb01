import { readRecords } from '@toolgate/core/change'
import { isOwnTool } from '@toolgate/core/internal'
import { maySee } from '../admin/http/callers.ts'
import type { GateParts, GatewayBase } from './gate-parts.ts'
import { withRules } from '../auth/revision.ts'
import { ChangeThread } from '../admin/change/change-thread.ts'
import type { Answers, Asker, Question, Reading, RecordsQuery } from '../admin/change/questions.ts'

/** Answers the questions that people ask a running gateway about changes. */
export interface Questions {
  /** @throws {ApiFault} for a text that cannot be used, and for a question that is too large */
  ask<Asked extends Question>(question: Asked, asker: Asker): Promise<Answers[Asked['what']]>
}

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

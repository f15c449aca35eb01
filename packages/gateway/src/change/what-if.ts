import type { Caller, Gate } from '@toolgate/core'
import type { AuditExporter } from '@toolgate/core/audit'
import { type WhatIf, whatIf } from '@toolgate/core/change'
import type { Redactor } from '@toolgate/core/redact'
import type { Clock } from '@toolgate/core/stores'
import type { WhatIfBody } from '../api/wire.ts'
import { exportFor } from '../api/callers.ts'
import type { GatewayConfig } from '../config/config.ts'
import { nextTurn } from '../next-turn.ts'
import type { Rules, Settings } from '../revision.ts'
import type { OpenedAudit } from '../stores.ts'
import { rulesOfChange } from './rules-of-change.ts'

/** Everything that a what-if in a running gateway needs. */
export interface WhatIfDeps {
  readonly gate: Gate
  readonly audit: AuditExporter & Pick<OpenedAudit, 'hashText'>
  readonly clock: Pick<Clock, 'wallMs' | 'monotonicMs'>
  readonly settings: Settings
  rules(): Rules
  /** Returns the text of the gateway's file with another section `policy`. @throws {ConfigError} */
  withPolicy(policy: string): string
  /** Parses a text in the place of the gateway's file. Runs no command. @throws {ConfigFileError} with every problem */
  parse(text: string): Promise<GatewayConfig>
  redactor(config: Pick<GatewayConfig, 'secrets'>): Redactor
}

export interface AskedChange {
  /** A whole file, or its section `policy`. */
  readonly text: string
  readonly isPolicy: boolean
  /** Wall-clock milliseconds. */
  readonly since: number | undefined
  /** Sees the calls of their tenant only, if they have one. */
  readonly person: Caller
  readonly signal: AbortSignal
}

export const WEEK_MS = 7 * 86_400_000
/** How long the history of a run may last after its last use: what is read before `since`, so that runs are known. */
export const BEFORE_MS = 86_400_000
/** A gateway serves calls meanwhile: what takes longer is for the command. */
export const MAX_MS = 60_000
const MAX_NAMED = 100
const MAX_CALLERS = 1000

/** Returns what the rules of a text would mean for callers and recorded calls. @throws {ConfigFileError} and nothing was read */
export async function whatIfText(deps: WhatIfDeps, asked: AskedChange): Promise<WhatIfBody> {
  const { gate, audit, clock, settings, rules, parse, redactor } = deps
  const { text, isPolicy, since, person, signal } = asked
  const config = await parse(isPolicy ? deps.withPolicy(text) : text)
  const items = [...gate.catalog.snapshot(), ...gate.catalog.items()]
  const from = since ?? clock.wallMs() - WEEK_MS
  const endMs = clock.monotonicMs() + MAX_MS
  let isWhole = true
  async function* inTime() {
    for await (const record of exportFor(person, audit, { since: from - BEFORE_MS })) {
      isWhole = clock.monotonicMs() <= endMs
      if (!isWhole) return
      yield record
    }
  }
  const found = await whatIf({
    before: rulesOfChange(items, { ...settings, ...rules() }),
    after: rulesOfChange(items, config),
    records: inTime(),
    since: from,
    signal,
    hashOf: audit.hashText,
    onProgress: nextTurn,
  })
  return toWhatIfBody(found, { isWhole, redactor: redactor(config) })
}

export function toWhatIfBody(
  { access, rows, rules, ...counts }: WhatIf,
  { isWhole, redactor }: { isWhole: boolean; redactor: Pick<Redactor, 'redactText'> },
): WhatIfBody {
  const { redactText } = redactor
  return {
    ...counts,
    isWhole,
    // Names and texts of clauses may hold what was filled in.
    rows: rows.map((row) => ({ ...row, rule: redactText(row.rule), why: redactText(row.why) })),
    rules: rules.map((rule) => ({ ...rule, rule: redactText(rule.rule) })),
    access: access.slice(0, MAX_CALLERS).map(({ caller, gains, loses, unknown }) => ({
      caller,
      gains: gains.slice(0, MAX_NAMED),
      loses: loses.slice(0, MAX_NAMED),
      unknown: unknown.slice(0, MAX_NAMED),
      counts: { gains: gains.length, loses: loses.length, unknown: unknown.length },
    })),
    callers: access.length,
  }
}

import type { Caller } from '@toolgate/core'
import type { AuditExportQuery } from '@toolgate/core/audit'
import type { CatalogSnapshot, HashOf, ReadRecords } from '@toolgate/change'
import { createRedactor, type Redactor } from '@toolgate/values/redact'
import type { CompareBody, PolicyTestsBody, SuggestBody, WhatIfBody } from '../../model/rows.ts'
import type { GatewayConfig } from '../../config/config.ts'
import { type LoadConfigOptions, readConfig } from '../../config/load-config.ts'
import { checkTaken, withPolicy } from './proposed-config.ts'

/** A text that somebody proposes for the gateway's file. */
export interface ProposedText {
  /** A whole file, or its section `policy`. */
  readonly text: string
  readonly isPolicy: boolean
}

export interface WhatIfQuestion extends ProposedText {
  readonly what: 'whatIf'
  /** Wall-clock milliseconds. */
  readonly since: number | undefined
}

export interface CompareQuestion extends ProposedText {
  readonly what: 'compare'
}

export interface TestQuestion {
  readonly what: 'test'
  /** The text of a file of tests. */
  readonly tests: string
  /** Absent: the configuration in force is tested. */
  readonly proposed: ProposedText | undefined
}

export interface SuggestQuestion {
  readonly what: 'suggest'
  /** Wall-clock milliseconds. */
  readonly since: number | undefined
  readonly role: string | undefined
}

/** The questions about changes that an operator may ask a running gateway. They and their answers are plain data. */
export type Question = WhatIfQuestion | CompareQuestion | TestQuestion | SuggestQuestion

export interface Answers {
  readonly whatIf: WhatIfBody
  readonly compare: CompareBody
  readonly test: PolicyTestsBody
  readonly suggest: SuggestBody
}

export type Answer = Answers[keyof Answers]

/** How texts in the place of the gateway's file are read. */
export type Reading = Pick<LoadConfigOptions, 'env' | 'packagesFrom'>

/** The state of the gateway that a question is about, as data. */
export interface Situation {
  /** The configuration in force. */
  readonly config: GatewayConfig
  readonly reading: Reading
  /** Secrets that the gateway masks wherever they appear. */
  readonly secrets: readonly string[]
  readonly nowMs: number
}

/** Which records a question reads. */
export type RecordsQuery = Pick<AuditExportQuery, 'since'>

/** Everything from which a question is answered. */
export interface ChangeDeps {
  /** The configuration in force. */
  readonly config: GatewayConfig
  readonly catalog: CatalogSnapshot
  readonly nowMs: number
  /** Returns the records that the person who asks may see, and how many the audit lacks. */
  records(query: RecordsQuery): ReadRecords
  /** Absent: the audit keeps no hashes. */
  readonly hashOf: HashOf | undefined
  /** Parses a proposed text. Runs no command. @throws {ConfigFileError} with every problem */
  parse(proposed: ProposedText): Promise<GatewayConfig>
  /** Returns what masks the secrets of the gateway, and those of a configuration. */
  redactor(config: Pick<GatewayConfig, 'secrets'>): Redactor
}

/** Returns what a question is answered from, in a situation. */
export function changeDeps(
  { config, reading, secrets, nowMs }: Situation,
  read: Pick<ChangeDeps, 'catalog' | 'records' | 'hashOf'>,
): ChangeDeps {
  return {
    ...read,
    config,
    nowMs,
    async parse({ text: written, isPolicy }) {
      const text = isPolicy ? withPolicy(written, config, config.policySource) : written
      checkTaken(text, config)
      return readConfig(config.file, { ...reading, text, mayRun: [] })
    },
    redactor: (other) => createRedactor({ ...config.redact, secrets: [...secrets, ...(other.secrets ?? [])] }),
  }
}

/** Who asks, and until when. */
export interface Asker {
  /** Sees the calls of their tenant only, if they have one. */
  readonly person: Caller
  readonly signal: AbortSignal
}

/** Answers the questions that people ask a running gateway about changes. */
export interface Questions {
  /** @throws {ApiFault} for a text that cannot be used, and for a question that is too large */
  ask<Asked extends Question>(question: Asked, asker: Asker): Promise<Answers[Asked['what']]>
}

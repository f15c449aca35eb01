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
  /** A whole file, or only its `policy` section. */
  readonly text: string
  readonly isPolicy: boolean
}

export interface WhatIfQuestion extends ProposedText {
  readonly what: 'whatIf'
  /** In wall-clock milliseconds. */
  readonly since: number | undefined
}

export interface CompareQuestion extends ProposedText {
  readonly what: 'compare'
}

export interface TestQuestion {
  readonly what: 'test'
  /** The text of a file of tests. */
  readonly tests: string
  /** Absent: the current configuration is tested. */
  readonly proposed: ProposedText | undefined
}

export interface SuggestQuestion {
  readonly what: 'suggest'
  /** In wall-clock milliseconds. */
  readonly since: number | undefined
  readonly role: string | undefined
}

/** The questions about changes that an operator may ask a running gateway. Questions and answers are plain data. */
export type ThreadQuestion = WhatIfQuestion | CompareQuestion | TestQuestion | SuggestQuestion

export interface QuestionAnswers {
  readonly whatIf: WhatIfBody
  readonly compare: CompareBody
  readonly test: PolicyTestsBody
  readonly suggest: SuggestBody
}

export type QuestionAnswer = QuestionAnswers[keyof QuestionAnswers]

/** How to read a text that replaces the gateway's file. */
export type QuestionReading = Pick<LoadConfigOptions, 'env' | 'packagesFrom'>

/** The state of the gateway that a question is about, as data. */
export interface Situation {
  /** The current configuration. */
  readonly config: GatewayConfig
  /** The people who signed in and whom the asking person may see. */
  readonly people: readonly Caller[]
  readonly reading: QuestionReading
  /** Secrets that the gateway masks wherever they appear. */
  readonly secrets: readonly string[]
  readonly nowMs: number
}

/** The records that a question reads. */
export type RecordsQuery = Pick<AuditExportQuery, 'since'>

/** The data and functions that answering a question needs. */
export interface ChangeDeps {
  /** The current configuration. */
  readonly config: GatewayConfig
  /** The people who signed in. */
  readonly people: readonly Caller[]
  readonly catalog: CatalogSnapshot
  readonly nowMs: number
  /** Returns the records that the asking person may see, and how many the audit lacks. */
  records(query: RecordsQuery): ReadRecords
  /** Returns the hash of an input, as the audit stores it. Absent if the audit stores no hashes. */
  readonly hashOf: HashOf | undefined
  /** Parses a proposed text. Runs no command. @throws {ConfigFileError} with every problem */
  parse(proposed: ProposedText): Promise<GatewayConfig>
  /** Returns a redactor for the secrets of the gateway and those of a configuration. */
  redactor(config: Pick<GatewayConfig, 'secrets'>): Redactor
}

/** Returns the dependencies for answering a question in a situation. */
export function changeDeps(
  { config, people, reading, secrets, nowMs }: Situation,
  read: Pick<ChangeDeps, 'catalog' | 'records' | 'hashOf'>,
): ChangeDeps {
  return {
    ...read,
    config,
    people,
    nowMs,
    async parse({ text: written, isPolicy }) {
      const text = isPolicy ? withPolicy(written, config, config.policySource) : written
      checkTaken(text, config)
      return readConfig(config.file, { ...reading, text, mayRun: [] })
    },
    redactor: (other) => createRedactor({ ...config.redact, secrets: [...secrets, ...(other.secrets ?? [])] }),
  }
}

/** The person who asks, and the signal that ends the question. */
interface QuestionAsker {
  /** A person with a tenant sees only the calls of this tenant. */
  readonly person: Caller
  readonly signal: AbortSignal
}

/** Answers the questions that people ask a running gateway about changes. */
export interface ThreadQuestions {
  /** @throws {ApiFault} for a text that cannot be used, and for a question that is too large */
  ask<Asked extends ThreadQuestion>(question: Asked, asker: QuestionAsker): Promise<QuestionAnswers[Asked['what']]>
}

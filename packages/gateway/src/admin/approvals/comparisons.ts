import type { Heart } from '../../heart/heart.ts'
import { preparedViews } from '../../heart/views.ts'
import { randomUUID } from 'node:crypto'
import { type Approval, type CallOutcome, type Caller, defineCaller, type View } from '@toolgate/core'
import { type Approvals, isShownWhole } from '@toolgate/core/call'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Redactor } from '@toolgate/values/redact'
import type { Clock } from '@toolgate/core/stores'
import { isMcpResult, unwrapOutcome } from '@toolgate/mcp'
import type { ApprovalComparisonBody } from '../../model/rows.ts'
import { type Authenticator, callerAt, toResource } from '../../auth/credential.ts'
import type { ServerConfig } from '../../config/config.ts'
import {
  type CompareRule,
  compareRuleOf,
  isReadOnly,
  NOT_READ_ONLY,
  valueOf,
} from '../../servers/catalog/compare-rule.ts'

interface ComparisonsDeps {
  readonly approvals: Pick<Approvals, 'get'>
  readonly servers: () => readonly ServerConfig[]
  readonly authenticator: Pick<Authenticator, 'current'>
  /** Reads the run of a credential that this process has not seen in a request. */
  readonly loadRun: (id: string) => Promise<void>
  /** Returns a caller's view, in an app if one is named. @throws {ToolgateError} `app_unknown` */
  readonly view: (caller: Caller, app: string | undefined) => Promise<View>
  readonly redact: Redactor
  readonly clock: Pick<Clock, 'wallMs'>
  /** The time limit for reading. Default 15 s. */
  readonly deadlineMs?: number
}

/** Returns the comparisons of a gateway. */
export function openComparisons({ gate, revisions, door, servers, redact, clock }: ComparingHeart): Comparisons {
  return new Comparisons({
    approvals: gate.approvals,
    servers: () => revisions.current.servers,
    authenticator: door.authenticator,
    loadRun: (id) => door.runs.load(id),
    view: preparedViews({ gate, servers }),
    redact,
    clock,
  })
}

type ComparingHeart = Pick<Heart, 'gate' | 'revisions' | 'door' | 'servers' | 'redact' | 'clock'>

const DEADLINE_MS = 15_000
/** The maximum length of a text that a person can compare and a browser can show. */
const MAX_CHARS = 256 * 1024
const MAX_REASON = 500
/** The maximum number of concurrent comparisons. A person looks at one. */
const MAX_AT_ONCE = 8

/** Why no comparison is shown, for the person who decides. */
class NotShown extends Error {}

/**
 * Compares the text that a waiting call would write with the current text, for the person who decides.
 *
 * A configured tool reads the current text with the rights of the caller who asked: their view, their policies and
 * their instance of the server. The read is one call, recorded as made for that person.
 */
export class Comparisons {
  readonly #deps: ComparisonsDeps
  readonly #underWay = new Set<string>()

  constructor(deps: ComparisonsDeps) {
    this.#deps = deps
  }

  /** Returns whether the configuration has a `compare` for a tool. */
  has(tool: string): boolean {
    return compareRuleOf(tool, this.#deps.servers()) !== undefined
  }

  /**
   * Returns the caller who asked for an approval, in their current form; `undefined` if they may no longer call, or are
   * not known here.
   */
  async askerOf(id: string): Promise<Caller | undefined> {
    const approval = await this.#deps.approvals.get(id)
    return approval && this.#callerOf(approval)
  }

  async #callerOf({ asker, user, tenant }: Approval): Promise<Caller | undefined> {
    if (!asker) return undefined
    if (!this.#deps.authenticator.current(asker.id)) await this.#deps.loadRun(asker.id)
    const caller = this.#callerNow(asker)
    return caller?.user === user && caller?.tenant === tenant ? caller : undefined
  }

  #callerNow({ id, app, session }: NonNullable<Approval['asker']>): Caller | undefined {
    const caller = callerAt(this.#deps.authenticator.current(id), toResource(app))
    return caller && session !== undefined ? defineCaller({ ...caller, session }) : caller
  }

  /** Compares one approval. Never rejects because of a server. `by`: the person's name. */
  async compare(shown: Approval, by: string, signal: AbortSignal): Promise<ApprovalComparisonBody> {
    const { id, tool } = shown
    const rule = compareRuleOf(tool, this.#deps.servers())
    const about = { approval: id, ...(rule && { reader: rule.reader, field: rule.text }) }
    if (this.#underWay.has(id) || this.#underWay.size >= MAX_AT_ONCE)
      return { ...about, atMs: this.#deps.clock.wallMs(), notShown: 'It is being read already. Try again in a moment.' }
    this.#underWay.add(id)
    try {
      if (!rule) throw new NotShown('The configuration does not say how to read what is there.')
      const approval = (await this.#deps.approvals.get(id)) ?? shown
      const proposed = proposedOf(approval, rule)
      const output = await this.#read(approval, rule, by, signal)
      const { redact } = this.#deps
      if (redact.redactText(proposed) !== proposed) throw new NotShown(MASKED)
      const present = redact.redactText(output)
      const masked = present === output ? {} : { masked: true as const }
      return { ...about, atMs: this.#deps.clock.wallMs(), present, proposed, ...masked }
    } catch (error) {
      if (!(error instanceof NotShown)) throw error
      return { ...about, atMs: this.#deps.clock.wallMs(), notShown: this.#toReason(error.message) }
    } finally {
      this.#underWay.delete(id)
    }
  }

  #toReason(text: string): string {
    const shown = this.#deps.redact.redactText(text)
    return shown.length <= MAX_REASON ? shown : `${shown.slice(0, MAX_REASON - 1)}…`.toWellFormed()
  }

  /** @throws {NotShown} */
  async #read(approval: Approval, rule: CompareRule, by: string, signal: AbortSignal): Promise<string> {
    const { asker } = approval
    const input = inputOf(approval.input, rule)
    const caller = await this.#callerOf(approval)
    if (!asker || !caller)
      throw new NotShown(
        'The credential of the call is no longer accepted, or this gateway has not seen it since it started.',
      )
    const view = await this.#deps.view(caller, asker.app)
    const tool = view.get(rule.reader)
    if (tool && !isReadOnly(tool)) throw new NotShown(`${rule.reader} ${NOT_READ_ONLY}.`)
    const outcome = unwrapOutcome(
      await view.call({
        tool: rule.reader,
        input,
        callId: `compare-${randomUUID()}`,
        as: { kind: 'compare', approval: approval.id, by },
        callerNow: () => this.#callerNow(asker),
        deadlineMs: this.#deps.deadlineMs ?? DEADLINE_MS,
        signal,
      }),
    )
    return textOf(outcome, rule.reader)
  }
}

const MASKED = 'The input is shown with parts of it masked, so a difference would be false.'

/** @throws {NotShown} */
function proposedOf(approval: Approval, { text }: CompareRule): string {
  if (!isShownWhole(approval)) throw new NotShown(MASKED)
  const proposed = valueOf(text, approval.input)
  if (typeof proposed !== 'string') throw new NotShown(`The call has no text in ${text}.`)
  if (proposed.length > MAX_CHARS) throw new NotShown(`The text of the call is longer than ${MAX_CHARS} characters.`)
  return proposed
}

/** @throws {NotShown} */
function inputOf(input: unknown, rule: CompareRule): JsonObject {
  const entries = Object.entries(rule.input).map(([field, value]) => {
    const given = typeof value === 'string' ? valueOf(value, input) : value
    if (given === undefined) throw new NotShown(`The call has nothing in ${String(value)}, which ${rule.reader} needs.`)
    return [field, given] as const
  })
  return Object.fromEntries(entries)
}

/** Returns the text that a tool has read. @throws {NotShown} */
function textOf(outcome: CallOutcome, reader: string): string {
  switch (outcome.status) {
    case 'refused':
      throw new NotShown(`${reader} is refused to the caller: ${outcome.decision.reasons[0]?.text ?? outcome.text}`)
    case 'waiting':
    case 'input_required':
      throw new NotShown(`${reader} asks for more than its input.`)
    case 'failed':
      throw new NotShown(outcome.text)
    case 'done':
      break
  }
  if (outcome.isError) throw new NotShown(`${reader} reports an error: ${onlyText(outcome.output) ?? outcome.text}`)
  const text = onlyText(outcome.output)
  if (text === undefined) throw new NotShown(`${reader} did not return one text.`)
  if (text.length > MAX_CHARS || CUT.test(text)) throw new NotShown('What is there is too long to be shown.')
  if (/[\0\ufffd]/.test(text) || !text.isWellFormed()) throw new NotShown('What is there is not text.')
  return text
}

/** The note with which the gate ends a text that it has cut. */
const CUT = /\[cut: [^\]]{1,100}\]$/

/** Returns the only text of an output. If there are several, the current text is ambiguous. */
function onlyText(output: unknown): string | undefined {
  if (typeof output === 'string') return output
  const [block, ...others] = isMcpResult(output) ? (output.content ?? []) : []
  if (!isObject(block) || others.length > 0) return undefined
  const holder = isObject(block['resource']) ? block['resource'] : block
  return typeof holder['text'] === 'string' ? holder['text'] : undefined
}

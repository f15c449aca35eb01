import { type LimitUseOf, operandsOfCall } from '@toolgate/core/call'
import { joinOperands } from '@toolgate/core/policy'
import { HashedTexts, type HashOf, LazyInput, type RecordedInput } from './recorded-facts.ts'
import type { InputOf } from './sealed-calls.ts'
import { callerKey } from '@toolgate/core/internal'
import type { AuditRecord } from '@toolgate/core/audit'
import type { RecordedCaller, RecordedCallers } from './recorded-callers.ts'
import type { Asked, Both, Side } from './side.ts'

/** The answers of one set of rules about a tool and a partly known caller. Both are equal if everything is known. */
export interface AskedPair {
  readonly strict: Asked
  readonly lax: Asked
}

/** A caller and a tool under the rules before and after. */
export interface Question {
  readonly caller: RecordedCaller
  readonly before: AskedPair
  readonly after: AskedPair
  /** Whether both sets of rules have equal text for the tool, so that they decide every call the same way. */
  readonly isSame: boolean
  /** The limits that only the new rules have, and the limits that only the old rules had. */
  readonly newUses: readonly LimitUseOf[]
  readonly goneUses: readonly LimitUseOf[]
  /** Returns the input of a call, as far as its record has it. */
  inputOf(record: AuditRecord): RecordedInput
}

interface QuestionsOptions extends Both<Side> {
  readonly callers: Both<RecordedCallers>
  readonly sameApps: boolean
  /** Whether both sets of rules record the same facts about runs. */
  readonly sameRuns: boolean
  /** Returns the keyed hash of a text that a rule compares with. Absent if the key is not known. */
  readonly hashOf: HashOf | undefined
  /** Absent if whole inputs are not known. */
  readonly inputOf: InputOf | undefined
}

/** Evaluates both sets of rules once for each caller and tool in the records. */
export class Questions {
  readonly #options: QuestionsOptions
  readonly #known = new WeakMap<RecordedCaller, Map<string, Question>>()

  constructor(options: QuestionsOptions) {
    this.#options = options
  }

  /** Returns the question that a recorded call asks the rules, synchronously if the question is cached. */
  of(record: AuditRecord): Question | Promise<Question> {
    const caller = this.#options.callers.after.of(record)
    const key = record.app === undefined ? (record.tool as string) : `${record.tool}\0${record.app}`
    return this.#known.get(caller)?.get(key) ?? this.#ask(record, caller, key)
  }

  async #ask(record: AuditRecord, caller: RecordedCaller, key: string): Promise<Question> {
    const { callers, before, after, sameApps, sameRuns, hashOf, inputOf } = this.#options
    const earlier = callers.before.of(record)
    const pairs = { before: await pairOf(before, earlier, record), after: await pairOf(after, caller, record) }
    const isPlain = record.kind === undefined || record.kind === 'prompt'
    const operands = [pairs.before.strict, pairs.after.strict].map(({ decided, uses }) => operandsOfCall(decided, uses))
    // Includes templates, because they decide about resources, too, and may read more.
    const texts = await HashedTexts.of(joinOperands(operands), isPlain ? hashOf : undefined)
    const question: Question = {
      caller,
      ...pairs,
      isSame:
        callerKey(earlier.strict) === callerKey(caller.strict) &&
        (record.app === undefined || sameApps) &&
        (sameRuns || !pairs.after.strict.readsRun) &&
        isPlain &&
        pairs.after.strict.decided.tool !== undefined &&
        before.rulesAbout(pairs.before.strict) === after.rulesAbout(pairs.after.strict),
      newUses: withoutUses(pairs.after.strict.uses, pairs.before.strict.uses),
      goneUses: withoutUses(pairs.before.strict.uses, pairs.after.strict.uses),
      inputOf: (one) => new LazyInput(one, texts, inputOf),
    }
    let known = this.#known.get(caller)
    if (!known || known.size >= MAX_TOOLS) this.#known.set(caller, (known = new Map()))
    known.set(key, question)
    return question
  }
}

/** The most tools of one caller, because resources may have any number of URIs. */
const MAX_TOOLS = 10_000

async function pairOf(
  side: Side,
  { strict, lax }: RecordedCaller,
  { app, tool = '' }: AuditRecord,
): Promise<AskedPair> {
  const asked = await side.lookUp(strict, app, tool)
  return { strict: asked, lax: lax === strict ? asked : await side.lookUp(lax, app, tool) }
}

function withoutUses(uses: readonly LimitUseOf[], others: readonly LimitUseOf[]): readonly LimitUseOf[] {
  return uses.filter((use) => !others.some((other) => textOf(other) === textOf(use)))
}

function textOf({ key, max, windowMs, costing }: LimitUseOf): string {
  return JSON.stringify([
    key,
    max,
    windowMs,
    costing?.cost.text,
    costing?.maxCost,
    costing?.settle?.text,
    costing?.refundsFailed,
  ])
}

import { type CallView, type LimitUseOf, toCallView } from '@toolgate/core/call'
import {
  type Decided,
  hasBit,
  mayGoOn,
  type PolicyIndex,
  readsCall,
  readsRun,
  type RunFacts,
  strictest,
} from '@toolgate/core/decide'
import type { Caller, Decision, Gate, OutcomeWord, Reason } from '@toolgate/core'
import type { ParsedClause, ParsedCondition } from '@toolgate/core/policy'
import { canonicalize } from '@toolgate/values/json'
import { toSnapshot } from './snapshot.ts'

/** The answer of a set of rules about one tool and caller, before a call is known. */
export interface Asked {
  readonly view: CallView
  readonly decided: Decided
  /** The decision of the clauses without inputs and runs. */
  readonly decision: Decision
  readonly readsCall: boolean
  readonly readsRun: boolean
  readonly uses: readonly LimitUseOf[]
}

/** The decision that rules would make on a call. */
export interface Verdict {
  readonly outcome: OutcomeWord
  /** All reasons that hold, the deciding one first. */
  readonly reasons: readonly Reason[]
}

/** Evaluates one set of rules for recorded calls, with `decide` in a trial gate. */
export class Side {
  readonly gate: Gate
  readonly #asked = new WeakMap<Caller, Map<string, Asked>>()
  readonly #rules = new Map<string, string>()

  constructor(gate: Gate) {
    this.gate = gate
  }

  /** Returns the answer, if it is cached. */
  known(caller: Caller, app: string | undefined, id: string): Asked | undefined {
    return this.#asked.get(caller)?.get(keyOf(app, id))
  }

  async lookUp(caller: Caller, app: string | undefined, id: string): Promise<Asked> {
    const view = toCallView(await this.gate.view(caller, app === undefined ? undefined : { app }))
    const decided = view.decide(id)
    const asked: Asked = {
      view,
      decided,
      decision: view.explainDecided(decided),
      readsCall: decided.tool !== undefined && readsCall(decided),
      readsRun: decided.tool !== undefined && readsRun(decided),
      uses: view.usesOf(decided),
    }
    let known = this.#asked.get(caller)
    if (!known || known.size >= MAX_ASKED) this.#asked.set(caller, (known = new Map()))
    known.set(keyOf(app, id), asked)
    return asked
  }

  /** Returns all rules about a tool as text. Equal texts decide equally for equal callers and runs. */
  rulesAbout({ decided: { tool, today, now } }: Asked): string {
    if (!tool) return ''
    let text = this.#rules.get(tool.id)
    if (text === undefined) {
      if (this.#rules.size >= MAX_ASKED) this.#rules.clear()
      const item = canonicalize(toSnapshot([tool]).items[0])
      this.#rules.set(tool.id, (text = `${item}\n${today.policies.map((policy) => textAbout(policy, now)).join('\n')}`))
    }
    return text
  }
}

const MAX_ASKED = 100_000

function keyOf(app: string | undefined, id: string): string {
  return app === undefined ? id : `${id}\0${app}`
}

/** Returns the decision of the rules on a call, as its checks would make it. */
export function judge(
  { view, decided, decision, readsCall: asksInput }: Asked,
  input: unknown,
  facts?: RunFacts,
): Verdict {
  if (!mayGoOn(decision.outcome)) return decision
  const withInput = asksInput ? view.decideInput(decided, input, facts) : undefined
  if (withInput && !mayGoOn(withInput.outcome)) return withInput
  const lacking = decision.reasons.filter(({ code }) => code === 'scope_step_up')
  if (lacking.length > 0) return { outcome: 'wait', reasons: lacking }
  return withInput ? strictest([decision, withInput]) : decision
}

function textAbout({ policy, allow, deny, ask, untagged }: PolicyIndex, at: number): string {
  if (policy.decide) return numberOf(policy.decide)
  const about = (clauses: PolicyIndex['deny']) =>
    clauses.flatMap(({ clause, bits }) => (hasBit(bits, at) ? [textOfClause(clause)] : [])).toSorted()
  const parts = [
    ...about(deny),
    ...about(ask),
    ...(allow ? [`allow ${about(allow).join(' or ')}`] : []),
    ...untagged.flatMap(({ tag, bits }) => (hasBit(bits, at) ? [`requires ${tag}`] : [])),
  ]
  return parts.join('\n')
}

function textOfClause({ kind, when, unless, input, approver }: ParsedClause): string {
  return canonicalize([kind, textOf(when), textOf(unless), textOf(input), approver ?? null])
}

function textOf(condition: ParsedCondition | undefined): string | null {
  if (!condition) return null
  return condition.functionName === undefined ? condition.text : numberOf(condition)
}

const numbers = new WeakMap<object, string>()
let latest = 0

/** Functions cannot be compared, so each gets its own number. */
function numberOf(of: object): string {
  let number = numbers.get(of)
  if (number === undefined) numbers.set(of, (number = `function ${++latest}`))
  return number
}

/** A value of the rules before a change, and of those after it. */
export interface Both<Value> {
  readonly before: Value
  readonly after: Value
}

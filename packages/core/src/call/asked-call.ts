import type { LimitUseOf } from './costs.ts'
import { joinOperands, NO_OPERANDS, type Operands } from '../policy/operands.ts'
import { hasBit } from '../tools/bits.ts'
import { matchesSelector } from '../tools/selector.ts'
import type { Decided } from '../decide/decide.ts'
import type { PolicyIndex } from '../decide/layers/clauses.ts'

const known = new WeakMap<readonly PolicyIndex[], Map<number, Operands>>()

/** Returns what the loaded rules read of a tool's calls, also in rules about earlier calls. Computed once for each tool. */
export function operandsOfCall({ tool, today, now }: Decided, uses: readonly LimitUseOf[] = []): Operands {
  if (!tool) return NO_OPERANDS
  let ofTools = known.get(today.policies)
  if (!ofTools) known.set(today.policies, (ofTools = new Map()))
  let operands = ofTools.get(now)
  if (!operands) {
    const clauses = today.policies.flatMap(({ deny, ask, allow, shadow }) => [
      ...deny,
      ...ask,
      ...(allow ?? []),
      ...(shadow ? [...shadow.deny, ...shadow.ask, ...(shadow.allow ?? [])] : []),
    ])
    const about = clauses.flatMap(({ clause, bits }) =>
      hasBit(bits, now) ? [clause.when, clause.unless, clause.input] : [],
    )
    const asked = clauses.flatMap(({ clause }) => clause.run?.patterns ?? [])
    const fields = asked.flatMap(({ selector, fields: named }) =>
      matchesSelector(selector, tool, 'possible') ? named.filter((field) => field.startsWith('input.')) : [],
    )
    const ofPatterns = {
      ...NO_OPERANDS,
      input: new Map(fields.map((field) => [field.slice('input.'.length), 'value' as const])),
    }
    operands = joinOperands([...about.flatMap((one) => one?.operands ?? []), ofPatterns])
    ofTools.set(now, operands)
  }
  const costs = uses.flatMap(({ costing }) => (costing ? [costing.cost.operands] : []))
  return costs.length === 0 ? operands : joinOperands([operands, ...costs])
}

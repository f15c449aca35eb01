import type { Tool } from '../tools/tool.ts'
import { askPeople, peekBeforeAsking, takeApproval } from './asking.ts'
import type { Attempt, Check, CheckList, CheckResult, Collaborators } from './attempt.ts'
import {
  askHooks,
  checkDecision,
  checkInput,
  checkLease,
  checkOpen,
  checkScopes,
  decideInput,
  decideNow,
} from './deciding.ts'
import { beginCall, readHistory } from './history.ts'
import { recordCall } from './records.ts'
import { checkStillAllowed, peekLimits, takeLimits } from './take-limits.ts'
import { takePlace, takeSlots } from './waiting.ts'

/** Reasons that can arise while a call waits. */
const MEANWHILE: Check['refusesWith'] = [
  'approval_required',
  'tool_changed',
  'caller_gone',
  'credential_ended',
  'gate_closed',
  'rate_limited',
]

/**
 * The checks that a call must pass before its tool runs, in order. The first check that stops the call ends it. The table
 * in docs/guide/the-call.md has a row for each.
 *
 * No check touches the tool. A slot, limit or approval is given back if a later check stops the call.
 */
export const CHECKS: readonly Check[] = [
  {
    name: 'decide',
    asks: 'what do catalog, policy, scopes, visibility, step, availability, locks, pins and halts say, as the view was made and as things are today? The stricter holds',
    refusesWith: [],
    run: checkDecision,
  },
  {
    name: 'open',
    asks: 'is the gate open, is the caller’s credential still valid, and has the tool an `execute`?',
    refusesWith: ['gate_closed', 'credential_ended', 'tool_not_executable'],
    run: checkOpen,
  },
  {
    name: 'lease',
    asks: 'does this replica know what the others have halted, denied and revoked?',
    refusesWith: ['replica_unsure'],
    needs: 'lease',
    run: checkLease,
  },
  {
    name: 'step up',
    asks: 'does the caller hold every required scope? A tool is listed without those of the gate’s `stepUp`',
    refusesWith: ['scope_needed'],
    needs: 'stepUp',
    run: checkScopes,
  },
  {
    name: 'validate',
    asks: 'does the input fit the tool’s JSON Schema? A frozen copy goes on from here',
    refusesWith: ['input_invalid'],
    run: checkInput,
  },
  {
    name: 'history',
    asks: 'what has happened in the run? Where that cannot be read, the next check gets the strictest answer',
    refusesWith: ['history_full'],
    needs: 'history',
    run: readHistory,
  },
  {
    name: 'decide with the input',
    asks: 'what do the clauses about the input and the run say?',
    refusesWith: ['input_denied', 'history_unknown', 'policy_error'],
    run: decideInput,
  },
  {
    name: 'beforeToolCall',
    asks: 'do the hooks of the call, of the forks, and of the gate agree? An input that one of them replaces is validated and decided again',
    refusesWith: ['hook_denied', 'hook_error'],
    of: 'hooks',
    run: askHooks,
  },
  {
    name: 'peek at the limits',
    asks: 'would the limits allow it? Only asked where an approval is needed: nobody should approve what cannot run',
    refusesWith: ['rate_limited', 'cost_invalid'],
    needs: 'limits',
    of: 'person',
    run: peekBeforeAsking,
  },
  {
    name: 'approval',
    asks: 'has a person approved this very call, or granted calls like it? If not, it ends `waiting`. A later round of a call asks no more',
    refusesWith: ['approval_rejected', 'approval_revoked', 'approvals_full'],
    of: 'person',
    run: askPeople,
  },
  {
    name: 'slot',
    asks: 'may another one run now? If not, it waits its turn',
    refusesWith: ['too_busy'],
    needs: 'slots',
    run: takeSlots,
  },
  {
    name: 'admission',
    asks: 'is there a place for it, such as an instance of the server for this user?',
    refusesWith: ['no_capacity'],
    needs: 'admission',
    of: 'place',
    run: takePlace,
  },
  {
    name: 'take the limits',
    asks: 'do all the limits allow it now? The first round of a call takes them for all its rounds',
    refusesWith: ['rate_limited', 'cost_invalid'],
    needs: 'limits',
    run: takeLimits,
  },
  {
    name: 'take the approval',
    asks: 'is the approval still valid? It is used up by this call',
    refusesWith: ['approval_used'],
    of: 'person',
    run: takeApproval,
  },
  {
    name: 'decide again',
    asks: 'does the decision still hold after all that was waited for?',
    refusesWith: MEANWHILE,
    run: checkStillAllowed,
  },
  {
    name: 'record',
    asks: 'can it be recorded that the call goes ahead?',
    refusesWith: ['audit_failed'],
    run: recordCall,
  },
  {
    name: 'the last look',
    asks: 'does it hold after the record was waited for, too?',
    refusesWith: MEANWHILE,
    run: checkStillAllowed,
  },
  {
    name: 'enter the call',
    asks: 'does it hold on what has begun up to now? It begins: its labels rise, however it ends',
    refusesWith: [...MEANWHILE, 'history_full', 'store_failed'],
    needs: 'history',
    run: enterCall,
  },
  {
    name: 'the lease, at last',
    asks: 'does it still know that? Nothing happens between this and `execute`',
    refusesWith: ['replica_unsure'],
    needs: 'lease',
    run: checkLease,
  },
]

/** A preview checks the limits last, also if an approval would be needed. */
const PREVIEWED_LIMITS: Check = {
  name: 'peek at the limits',
  asks: 'would the limits allow it?',
  refusesWith: ['rate_limited', 'cost_invalid'],
  needs: 'limits',
  run: (attempt, tool) => (attempt.uses.length > 0 ? peekLimits(attempt, tool) : undefined),
}

/** A call that shows data to an approver takes nothing and is not recorded in histories, so these checks are skipped. */
const NOT_COMPARED: ReadonlySet<string> = new Set([
  'peek at the limits',
  'take the limits',
  'take the approval',
  'enter the call',
])

/** Returns the checks of a gate for each kind of call, without checks that need parts that the gate does not have. */
export function checksOf(has: Readonly<Record<NonNullable<Check['needs']>, boolean>>): Collaborators['checks'] {
  const call = CHECKS.filter(({ needs }) => needs === undefined || has[needs])
  const before = (name: string) =>
    call.slice(
      0,
      call.findIndex((check) => check.name === name),
    )
  return {
    call,
    approval: [...before('approval'), ...call.filter(({ name }) => name === 'approval')],
    preview: [...before('beforeToolCall'), ...(has.limits ? [PREVIEWED_LIMITS] : [])],
    compare: call.filter(({ name }) => !NOT_COMPARED.has(name)),
    // These calls pass the same checks but spend no approval, because none is requested for them.
    complete: call.filter(({ name }) => name !== 'take the approval'),
    subscribe: call.filter(({ name }) => name !== 'take the approval'),
  } satisfies Record<CheckList, readonly Check[]>
}

/** If the store was slow to answer, the call is checked once more. */
function enterCall(attempt: Attempt, tool: Tool): CheckResult {
  const begun = beginCall(attempt, tool, () => {
    const decision = decideNow(attempt, tool)
    return decision && { decision }
  })
  return begun instanceof Promise ? begun.then((stop) => stop ?? checkStillAllowed(attempt, tool)) : begun
}

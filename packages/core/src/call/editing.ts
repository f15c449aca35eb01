import type { Reason } from '../decide/decision.ts'
import { patchedFields, withPatch } from '@toolgate/values/json'
import { chain, cut, outputText, ToolgateError } from '@toolgate/values'
import type { Approval, ApprovalEdit, ApprovalVerdict } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import { isShownWhole, shownInput } from './approvals.ts'
import type { Attempt, CallPorts, CheckResult } from './attempt.ts'
import { askHooks, newAskingReasons, replaceInput } from './deciding.ts'
import { hashesOf } from './granted.ts'

/**
 * Gives the call the input that its approvers chose, and decides it again. The approval stays that of the original input,
 * which the caller repeats.
 *
 * `asking`: why the original call asks. Where the changed one asks for other reasons, `askAgain` runs.
 */
export function editCall(
  attempt: Attempt,
  tool: Tool,
  { edit, asking, askAgain }: { edit: ApprovalEdit; asking: readonly Reason[]; askAgain: () => CheckResult },
): CheckResult {
  const original = attempt.input
  const input = withPatch(original, edit.input)
  attempt.edited = { original, edit, changes: changesOf(attempt, original, input, edit) }
  const stop = replaceInput(attempt, tool, input)
  if (stop) return stop
  // Two rules may have the same selector and no id, so the whole text of a rule counts.
  const known = new Set(hashesOf(asking))
  return chain(attempt.hooks.length > 0 ? askHooks(attempt, tool) : undefined, (denied) => {
    if (denied) return denied
    return hashesOf(newAskingReasons(attempt)).every((one) => known.has(one)) ? undefined : askAgain()
  })
}

/** One changed field, redacted. `undefined`: the input lacks it. */
interface ChangedField {
  readonly field: string
  readonly from: unknown
  readonly to: unknown
}

function changesOf(
  { ports }: Attempt,
  original: unknown,
  input: unknown,
  { input: patch }: ApprovalEdit,
): readonly ChangedField[] {
  const [before, after] = [original, input].map((one) => shownInput(one, ports.redactor, ports.onFault))
  return patchedFields(patch).map((path) => ({
    field: path.join('.'),
    from: valueAt(before, path),
    to: valueAt(after, path),
  }))
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce(
    (at, name) =>
      typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? Reflect.get(at, name) : undefined,
    value,
  )
}

const MAX_TOLD = 200

/** Returns the sentence that tells the model what was changed; `undefined` for an unchanged call. */
export function editNote({ edited }: Attempt, isRun: boolean): string | undefined {
  if (!edited) return undefined
  const changes = edited.changes.map(({ field, from, to }) => `${field} from ${told(from)} to ${told(to)}`)
  return `A person changed ${changes.join(' and ')}${isRun ? ' before it ran' : ''}.`
}

function told(value: unknown): string {
  return value === undefined
    ? 'nothing'
    : cut(typeof value === 'string' ? JSON.stringify(value) : outputText(value), MAX_TOLD)
}

/**
 * Checks that the changed input can be one of the tool, as far as the shown input allows. The call checks it again.
 *
 * @throws {ToolgateError} `approval_edit_refused`
 */
export function checkEdit(
  approval: Approval,
  patch: NonNullable<ApprovalVerdict['input']>,
  tool: Tool | undefined,
  { validate }: Pick<CallPorts, 'validate'>,
): void {
  if (!tool || definitionHash(tool) !== approval.definitionHash)
    throw refused('The tool has changed since the call was made, so its input cannot be changed.')
  if (tool.parseInput || tool.inputs === 'server') return
  const problem = validate(tool.inputSchema, withPatch(approval.input, patch))
  if (!problem) return
  // Masked parts may not fit the schema. They stay as they were.
  const isOfPatch = patchedFields(patch).some(([name = '']) => problem.pointer.split('/')[1] === name)
  if (isOfPatch || problem.pointer === '' || isShownWhole(approval))
    throw refused(`The changed input is invalid at "${problem.pointer}": it ${problem.message}.`)
}

function refused(message: string): ToolgateError {
  return new ToolgateError('approval_edit_refused', message)
}

import { ToolgateError } from '@toolgate/values'
import { canonicalize, patchedFields } from '@toolgate/values/json'
import type { Approval, ApprovalEdit, ApprovalVerdict } from '../ports/ports.ts'

type EditedApproval = Pick<Approval, 'approver' | 'approvedBy' | 'edit'>

/**
 * Returns the edit of an approval after a yes.
 *
 * All approvers approve the same input: who approves a changed call sends the same change, so that nobody approves a change
 * that they have not seen.
 *
 * @throws {ToolgateError} `approval_edit_refused`
 */
export function editOf(approval: EditedApproval, { input, by, atMs }: ApprovalVerdict): ApprovalEdit | undefined {
  const { approver, approvedBy = [], edit } = approval
  const patch = input && Object.keys(input).length > 0 ? input : undefined
  if (patch && approver?.edit !== true)
    throw refused(
      'The input of this call may not be changed: every rule that asks must have "edit: true", and the program that calls must take changed inputs. Clients of MCP do; "/api/call" and the adapters do not.',
    )
  if (patch) checkPatch(patch)
  if (approvedBy.length === 0) return patch && { by, atMs, input: patch }
  if (edit === undefined) {
    if (patch) throw refused(`${namesOf(approval)} approved the call as it is. Approve that, or reject it.`)
    return undefined
  }
  if (!patch || canonicalize(patch) !== canonicalize(edit.input))
    throw refused(
      `${edit.by} changed ${namesOfFields(edit)}. To approve the changed call, send the same change; otherwise reject it.`,
    )
  return edit
}

/** The most characters of a change. */
const MAX_PATCH = 1_000_000
/** What stands in the place of a secret in the input that approvers see. */
const MASK = /\[redacted:[a-z0-9-]{1,64}\]|\[hidden here: \d+ characters/

function checkPatch(patch: Readonly<Record<string, unknown>>): void {
  const text = canonicalize(patch)
  if (text.length > MAX_PATCH) throw refused(`A change has at most ${MAX_PATCH} characters.`)
  const masked = Object.entries(patch).find((entry) => MASK.test(canonicalize(entry)))
  if (masked)
    throw refused(
      `The change of "${masked[0]}" contains a masked part, which the tool would get as it is shown. Leave out what you do not change: it stays as it was.`,
    )
}

/** Returns the changed fields: `amount, to.name`. */
function namesOfFields({ input }: Pick<ApprovalEdit, 'input'>): string {
  return patchedFields(input)
    .map((path) => path.join('.'))
    .join(', ')
}

function namesOf({ approvedBy = [] }: EditedApproval): string {
  return approvedBy.map(({ by }) => by).join(' and ')
}

function refused(message: string): ToolgateError {
  return new ToolgateError('approval_edit_refused', message)
}

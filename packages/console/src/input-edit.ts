import { type Draft, type Field, ownOf, pointerTo, toInput } from './input-form.ts'
import { writeDigits } from './digits.ts'

/** One changed field, for a person to check. Absent: the field is not there. */
export interface FieldChange {
  readonly pointer: string
  readonly from?: unknown
  readonly to?: unknown
}

/** Returns the draft of a form that shows an input. */
export function toDraft(field: Field, input: unknown): Draft {
  if (input === undefined) return undefined
  if (field.kind === 'object') {
    if (!isRecord(input)) return undefined
    return Object.fromEntries(field.members.map((one) => [one.name, toDraft(one.field, ownIn(input, one.name))]))
  }
  if (field.kind === 'list') return Array.isArray(input) ? input.map((one) => toDraft(field.item, one)) : undefined
  if (field.kind === 'choice') {
    const at = field.values.findIndex((one) => writeDigits(one) === writeDigits(input))
    return at < 0 ? undefined : String(at)
  }
  return field.kind === 'text' && typeof input === 'string' ? input : writeDigits(input)
}

/**
 * Returns the changed fields as a merge patch (RFC 7396), and each change. Untouched fields are not in it, so they keep
 * their values, also those that the form cannot show.
 */
export function changesOf(
  field: Field,
  { input, before, after }: { readonly input: unknown; readonly before: Draft; readonly after: Draft },
): { readonly patch: Readonly<Record<string, unknown>>; readonly changes: readonly FieldChange[] } {
  const changes: FieldChange[] = []
  const patch = patchOf(field, { input, before, after, pointer: '', changes })
  return { patch: isRecord(patch) ? patch : {}, changes }
}

interface EditPlace {
  readonly input: unknown
  readonly before: Draft
  readonly after: Draft
  readonly pointer: string
  readonly changes: FieldChange[]
}

function patchOf(field: Field, { input, before, after, pointer, changes }: EditPlace): unknown {
  if (field.kind === 'object' && (pointer === '' || isRecord(input))) {
    const entries = field.members.flatMap(({ name, field: inner, isRequired }): (readonly [string, unknown])[] => {
      const [was, is] = [ownOf(before, name), ownOf(after, name)]
      if (writeDigits(was ?? null) === writeDigits(is ?? null)) return []
      const at = { input: ownIn(input, name), before: was, after: is, pointer: pointerTo(pointer, name), changes }
      const value = patchOf(isRequired && inner.kind === 'text' ? REQUIRED_TEXT : inner, at)
      return value === undefined ? [] : [[name, value]]
    })
    // `fromEntries` sets own properties, even for `__proto__`.
    return Object.fromEntries(entries)
  }
  const to = field === REQUIRED_TEXT ? (after ?? '') : isEmpty(after) ? undefined : toInput(field, after).input
  if (to === undefined && input === undefined) return undefined
  changes.push({ pointer, ...(input !== undefined && { from: input }), ...(to !== undefined && { to }) })
  return to === undefined ? null : to
}

/** A text that stays an empty one, as it may not be left out. */
const REQUIRED_TEXT: Field = { kind: 'text' }

function isEmpty(draft: Draft): boolean {
  return draft === undefined || draft === ''
}

function ownIn(input: unknown, name: string): unknown {
  return isRecord(input) && Object.hasOwn(input, name) ? input[name] : undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the changes of a merge patch, for a person to check. */
export function changesIn(patch: unknown, input: unknown, pointer = ''): readonly FieldChange[] {
  if (isRecord(patch))
    return Object.entries(patch).flatMap(([name, one]) => changesIn(one, ownIn(input, name), pointerTo(pointer, name)))
  return [{ pointer, ...(input !== undefined && { from: input }), ...(patch !== null && { to: patch }) }]
}

import type { FactRead } from '../ports/fact-read.ts'
import type { Redactor } from '@toolgate/values/redact'
import { cut } from '@toolgate/values'
import { previewField } from './preview.ts'
import { readOwnJson } from '@toolgate/values/json'

/** A recorded fact that counted against a call. Every value is a text, redacted and cut. */
interface RecordedOperand {
  readonly kind: FactRead['kind']
  readonly of: string
  readonly origin?: FactRead['origin']
  readonly values?: readonly { readonly field?: string; readonly value: string; readonly origin: string }[]
  /** The fields that had to be equal, with the values that they had to have. */
  readonly wanted?: Readonly<Record<string, string>>
  /** The earlier calls. If there are none, `tools` has those that the selector matches. */
  readonly calls?: FactRead['calls']
  readonly tools?: readonly string[]
}

const MAX_OPERANDS = 8
const MAX_TEXT = 200
const MAX_LENGTH = 4096

/** Shows a field of the input; `undefined` if previews are switched off. */
type Show = (name: string, value: unknown) => string | undefined

/**
 * Returns the facts that counted against a call, as JSON of at most 4,096 characters. Values are redacted like previews,
 * and left out if previews are switched off.
 */
export function operandsText(read: readonly FactRead[], redact: Redactor, preview: boolean): string | undefined {
  const show: Show = (name, value) => (preview ? shownField(name, value, redact) : undefined)
  const texts: string[] = []
  let left = MAX_LENGTH - 2
  for (const text of new Set(read.slice(0, MAX_OPERANDS).map((one) => JSON.stringify(toOperand(one, show))))) {
    left -= text.length + 1
    if (left < 0) break
    texts.push(text)
  }
  return texts.length === 0 ? undefined : `[${texts.join(',')}]`
}

function toOperand(
  { kind, of, origin, values = [], fields = [], wanted, tools = [], calls = [] }: FactRead,
  show: Show,
): RecordedOperand {
  const found = values.flatMap(({ field, value, origin: from }) => {
    const text = show(field ?? of, value)
    return text === undefined ? [] : [{ ...(field !== undefined && { field }), value: text, origin: from }]
  })
  const equal = fields.flatMap((field, i) => {
    const text = wanted?.[i] === undefined ? undefined : show(field, wanted[i])
    return text === undefined ? [] : [[field, text] as const]
  })
  return {
    kind,
    of: cut(of, MAX_TEXT),
    ...(origin !== undefined && { origin }),
    ...(found.length > 0 && { values: found }),
    ...(equal.length > 0 && { wanted: Object.fromEntries(equal) }),
    ...(calls.length > 0 ? { calls } : tools.length > 0 && { tools }),
  }
}

export function shownField(name: string, value: unknown, redact: Redactor): string {
  try {
    return previewField(name.slice(name.lastIndexOf('.') + 1), value, redact)
  } catch {
    return '[not shown: it could not be redacted]'
  }
}

/** Returns the operands of a record, for people. Invalid text gives none. */
export function parseOperands(text: string | undefined): readonly RecordedOperand[] {
  try {
    const operands: unknown = readOwnJson(text ?? '[]')
    return Array.isArray(operands) ? (operands as readonly RecordedOperand[]) : []
  } catch {
    return []
  }
}

import type { Approval } from '@toolgate/core'
import { isObject, type JsonObject, readJson, toJsonText } from '@toolgate/values/json'
import { ApiFault } from '../../model/faults.ts'
import { EDIT_FIELD, type EditField } from '../http/approval-page-html.ts'

const MAX_FIELDS = 20
const MAX_CHARS = 500
/** Masked parts, and characters that a page shows as their code. Such fields stay as they are. */
const UNSHOWN = /\[redacted:|\[hidden here:|(?![\n])[\p{Cf}\p{Cc}]/u

/** Returns the fields of an input that a form without scripts can change. */
export function editFields(input: unknown, under: readonly string[] = []): readonly EditField[] {
  if (!isObject(input)) return []
  return Object.entries(input)
    .flatMap(([name, value]): readonly EditField[] => {
      const path = [...under, name]
      if (isObject(value)) return editFields(value, path)
      const text = typeof value === 'string' ? value : (toJsonText(value) ?? '')
      const isShown = ['string', 'number', 'bigint', 'boolean'].includes(typeof value) && text.length <= MAX_CHARS
      return isShown && !UNSHOWN.test(text) && !UNSHOWN.test(name)
        ? [{ path, isText: typeof value === 'string', text }]
        : []
    })
    .slice(0, MAX_FIELDS)
}

/**
 * Returns the fields that a form changes, as a merge patch; `undefined` if it changes none. The change of an earlier approver
 * is in the form as a whole.
 *
 * @throws {ApiFault} `body_invalid`
 */
export function patchOf(form: Pick<URLSearchParams, 'get'>, { input }: Approval): JsonObject | undefined {
  const whole = form.get(EDIT_FIELD)
  if (whole !== null) return parsePatch(whole)
  const patch: Record<string, unknown> = {}
  for (const { path, isText, text } of editFields(input)) {
    // Browsers send line breaks as CR LF.
    const given = form.get(`${EDIT_FIELD}:${JSON.stringify(path)}`)?.replaceAll('\r\n', '\n')
    if (given !== undefined && given !== text) setAt(patch, path, isText ? given : parseValue(given, path))
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}

function parsePatch(text: string): JsonObject {
  const patch = parseJson(text)
  if (!isObject(patch)) throw new ApiFault('body_invalid', 'The change is not a JSON object.')
  return patch
}

function parseValue(text: string, path: readonly string[]): unknown {
  const value = parseJson(text)
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return value
  throw new ApiFault('body_invalid', `The field "${path.join('.')}" must be a number, true or false.`)
}

function parseJson(text: string): unknown {
  try {
    return readJson(text, { integers: 'exact' })
  } catch {
    return undefined
  }
}

function setAt(patch: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path
  const define = (part: unknown) =>
    Object.defineProperty(patch, name, { value: part, enumerable: true, writable: true, configurable: true })
  if (rest.length === 0) return void define(value)
  const inner = Object.hasOwn(patch, name) ? (patch[name] as Record<string, unknown>) : {}
  setAt(inner, rest, value)
  define(inner)
}

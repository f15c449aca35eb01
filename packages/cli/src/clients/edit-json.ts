import { isDeepStrictEqual } from 'node:util'
import { isObject, type JsonObject, readOwnJson } from '@toolgate/values/json'
import { applyEdits, findNodeAtLocation, modify, type Node, parse, parseTree } from 'jsonc-parser'

const LENIENT = { allowTrailingComma: true } as const

/**
 * Returns the text with a member of a section set, or removed if the value is `undefined`. Comments, order and layout
 * of everything else stay.
 */
export function setMember(text: string, section: readonly string[], name: string, value: object | undefined): string {
  const before = parseValue(text)
  const members = memberAt(before, section)
  if (value === undefined && !Object.hasOwn(members, name)) return text
  const edited = value === undefined ? remove(text, section, name) : set(text, section, name, value)
  const expected = withMember(before, section, { ...members, [name]: value })
  // The content matters more than the layout.
  if (edited !== undefined && isDeepStrictEqual(parseValue(edited), plain(expected))) return edited
  return applyEdits(
    text,
    modify(text, [...section, name], value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }),
  )
}

function parseValue(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = parse(text, [], LENIENT)
  return isObject(value) ? value : {}
}

/** Returns the object at a path, or an empty one if there is none. */
export function memberAt(value: JsonObject, section: readonly string[]): JsonObject {
  const at = section.reduce<unknown>((one, key) => (isObject(one) ? one[key] : undefined), value)
  return isObject(at) ? at : {}
}

/** Returns the names of the members of a section, as they are written. */
export function namesAt(text: string, section: readonly string[]): readonly string[] {
  const root = parseTree(text, [], LENIENT)
  const at = root && findNodeAtLocation(root, [...section])
  return (at?.children ?? []).flatMap(({ children = [] }) => (children[0] ? [String(children[0].value)] : []))
}

function withMember(value: JsonObject, [key, ...inner]: readonly string[], member: object): object {
  return key === undefined ? member : { ...value, [key]: withMember(memberAt(value, [key]), inner, member) }
}

function plain(value: unknown): unknown {
  return readOwnJson(JSON.stringify(value))
}

function set(text: string, section: readonly string[], name: string, value: object): string | undefined {
  const root = parseTree(text, [], LENIENT)
  if (root?.type !== 'object') return undefined
  const at = findNodeAtLocation(root, [...section])
  if (!at) {
    const [key, ...inner] = section
    return key === undefined || inner.length > 0 ? undefined : addProperty(text, root, key, { [name]: value })
  }
  const known = findNodeAtLocation(root, [...section, name])
  if (!known) return addProperty(text, at, name, value)
  const indent = indentAt(text, known.parent?.offset ?? known.offset)
  return splice(text, known.offset, known.offset + known.length, jsonOf(value, text, indent))
}

/** Adds a property after the last one, whose comment stays on its line. */
function addProperty(text: string, object: Node, name: string, value: object): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const last = object.children?.at(-1)
  const outer = indentAt(text, object.offset)
  if (!last) {
    const end = object.offset + object.length - 1
    const kept = text.slice(object.offset + 1, end).trimEnd()
    const indent = outer + stepOf(text)
    const line = `${indent}${JSON.stringify(name)}: ${jsonOf(value, text, indent)}`
    return splice(text, object.offset + 1, end, `${kept}${eol}${line}${eol}${outer}`)
  }
  const isOneLine = !text.slice(object.offset, last.offset).includes('\n')
  const indent = isOneLine ? outer + stepOf(text) : indentAt(text, last.offset)
  const end = last.offset + last.length
  const [whole = '', comma, comment = ''] = /^(\s*,)?([ \t]*\/\/[^\r\n]*)?/.exec(text.slice(end)) ?? []
  const line = `${indent}${JSON.stringify(name)}: ${jsonOf(value, text, indent)}`
  return splice(text, end, end + whole.length, `${comma ?? ','}${comment}${eol}${line}${comma ? ',' : ''}`)
}

/** Removes a property with its comma, and its line if that is then empty. */
function remove(text: string, section: readonly string[], name: string): string | undefined {
  const root = parseTree(text, [], LENIENT)
  const property = root && findNodeAtLocation(root, [...section, name])?.parent
  const siblings = property?.parent?.children ?? []
  if (!property) return undefined
  const lineStart = text.lastIndexOf('\n', property.offset - 1) + 1
  const isFirstOnLine = text.slice(lineStart, property.offset).trim() === ''
  const start = isFirstOnLine ? lineStart : property.offset
  const after = text.slice(property.offset + property.length)
  const [comma] = /^\s*,/.exec(after) ?? []
  const [rest = ''] = (isFirstOnLine && /^[ \t]*(?:\/\/[^\r\n]*)?\r?\n/.exec(after.slice(comma?.length ?? 0))) || []
  const removed = splice(text, start, property.offset + property.length + (comma?.length ?? 0) + rest.length, '')
  const before = siblings[siblings.indexOf(property) - 1]
  if (comma !== undefined || !before) return removed
  // The last property had no comma, so the one before it must not have a comma either.
  const end = before.offset + before.length
  return splice(removed, end, end + (/^\s*,/.exec(text.slice(end))?.[0].length ?? 0), '')
}

function jsonOf(value: unknown, text: string, indent: string): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  return JSON.stringify(value, undefined, stepOf(text)).replaceAll('\n', `${eol}${indent}`)
}

function stepOf(text: string): string {
  return /^([ \t]+)\S/m.exec(text)?.[1] ?? '  '
}

function indentAt(text: string, offset: number): string {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)
  return /^[ \t]*/.exec(line)?.[0] ?? ''
}

function splice(text: string, start: number, end: number, middle: string): string {
  return text.slice(0, start) + middle + text.slice(end)
}

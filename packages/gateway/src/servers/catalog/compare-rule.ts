import type { Tool } from '@toolgate/core'
import { didYouMean } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import type { CompareConfig, ServerConfig } from '../../config/config.ts'

/** How to read the current content that a tool's call would change. */
export interface CompareRule extends CompareConfig {
  /** The id of the tool that reads the content. */
  readonly reader: string
}

/**
 * Returns how to read the content that calls of a tool would change; `undefined` if the configuration has no `compare`.
 */
export function compareRuleOf(id: string, servers: readonly ServerConfig[]): CompareRule | undefined {
  const [name, tool] = splitId(id)
  const server = servers.find((one) => one.name === name)
  const compare = [...(server?.tools ?? [])].findLast(
    ([pattern, overlay]) => overlay.compare && matchesGlob(parseGlob(pattern), tool),
  )?.[1].compare
  return compare && { ...compare, reader: `${name}:${compare.with}` }
}

function splitId(id: string): readonly [server: string, tool: string] {
  const colon = id.indexOf(':')
  return [id.slice(0, Math.max(colon, 0)), id.slice(colon + 1)]
}

/** Returns the value of a field of a call, such as `input.path`; `undefined` if the input lacks it. */
export function valueOf(field: string, input: unknown): unknown {
  let value = input
  for (const name of field.split('.').slice(1)) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}

/** Returns why `compare` cannot work, judged by the definitions of the tool and its reader; `undefined` if it can. */
export function problemOfRule(
  rule: CompareConfig,
  tool: Tool,
  reader: Tool | undefined,
  names: readonly string[],
): string | undefined {
  const { with: name } = rule
  if (!reader) return `"${name}" names no tool of the server${didYouMean(name, names)}`
  if (!isReadOnly(reader)) return `"${name}" ${NOT_READ_ONLY}`
  const used = [rule.text, ...Object.values(rule.input).filter((value) => typeof value === 'string')]
  const unknown = used.find((field) => !mayHave(tool.inputSchema, field))
  if (unknown !== undefined) {
    const known = Object.keys(propertiesOf(tool.inputSchema)).map((field) => `input.${field}`)
    return `"${unknown}" is no field of "${tool.name}"${didYouMean(unknown, known)}`
  }
  const properties = Object.keys(propertiesOf(reader.inputSchema))
  const foreign = Object.keys(rule.input).find((field) => !mayHave(reader.inputSchema, `input.${field}`))
  if (foreign !== undefined) return `"${foreign}" is no field of "${name}"${didYouMean(foreign, properties)}`
  const { required } = reader.inputSchema as { readonly required?: unknown }
  const missing = (Array.isArray(required) ? required : []).find((field) => !Object.hasOwn(rule.input, String(field)))
  return missing === undefined
    ? undefined
    : `"${name}" needs the field "${String(missing)}", which "input" does not have`
}

export const NOT_READ_ONLY =
  'is not annotated as read-only; if it is, say so with "annotations: { readOnlyHint: true }" in its entry'

export function isReadOnly({ annotations }: Tool): boolean {
  return annotations.readOnlyHint === true
}

function propertiesOf(schema: unknown): JsonObject {
  const properties = isObject(schema) ? schema['properties'] : undefined
  return isObject(properties) ? properties : {}
}

/** Whether a schema may allow a field. A schema excludes fields only if it names its properties. */
function mayHave(schema: unknown, field: string): boolean {
  const [first = '', ...rest] = field.split('.').slice(1)
  const properties = propertiesOf(schema)
  if (Object.keys(properties).length === 0) return true
  if (!Object.hasOwn(properties, first)) return false
  return rest.length === 0 || mayHave(properties[first], `input.${rest.join('.')}`)
}

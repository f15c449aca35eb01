import { ConfigError } from '@toolgate/core'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/internal'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { toDefinition } from './natives.ts'
import type { Governable } from './sdk-types.ts'

/**
 * Gives function tools and handoffs as a gate takes them, with what the overlay says of each. Their ids are their
 * names; a tool of a `toolNamespace` is `namespace:name`.
 *
 * As a record, by their ids, the compiler knows the ids.
 *
 * @throws {ConfigError} for hosted, computer, shell and patch tools, which no gate can govern; for two of one name, and
 * for a key that is not the id
 * @example
 * const gate = createGate({ tools: fromOpenAIAgents([search, remove], { remove: { tags: ['danger'] } }) })
 */
export function fromOpenAIAgents(
  tools: readonly Governable[],
  overlay?: Overlay,
): NativeToolRecord<Record<string, Governable>>
export function fromOpenAIAgents<Native extends Readonly<Record<string, Governable>>>(
  tools: Native,
  overlay?: Overlay<keyof Native & string>,
): NativeToolRecord<Native>
export function fromOpenAIAgents(
  tools: readonly Governable[] | Readonly<Record<string, Governable>>,
  overlay?: Overlay,
): NativeToolRecord<Record<string, Governable>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [key, native] of entriesOf(tools)) {
    const { id, definition } = toDefinition(native)
    if (key !== undefined && key !== id) throw new ConfigError(`tools.${key}`, `the tool's name is "${id}"`)
    if (definitions.has(id)) throw new ConfigError(`tools.${id}`, 'there are two tools of this name')
    definitions.set(id, definition)
  }
  return toNativeRecord(definitions, overlay)
}

function entriesOf(
  tools: readonly Governable[] | Readonly<Record<string, Governable>>,
): readonly (readonly [string | undefined, unknown])[] {
  return isList(tools) ? tools.map((tool) => [undefined, tool]) : Object.entries(tools)
}

function isList<T>(tools: readonly T[] | Readonly<Record<string, T>>): tools is readonly T[] {
  return Array.isArray(tools)
}

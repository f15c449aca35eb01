import { checkShape } from '@toolgate/values'
import {
  type NativeToolRecord,
  OVERLAY,
  type RecordTool,
  type ToolOverlay,
  type UnnamedToolDefinition,
} from '@toolgate/core/tools'

export type { ToolOverlay } from '@toolgate/core/tools'

export type Overlay<Name extends string = string> = { readonly [N in Name]?: ToolOverlay | undefined }

/**
 * Returns the tools of a framework for a gate, by their own names, combined with the overlay.
 *
 * @throws {ConfigError} for an unknown name in the overlay, and for an unknown field
 */
export function toNativeRecord<Native>(
  tools: ReadonlyMap<string, UnnamedToolDefinition>,
  overlay: Overlay = {},
): NativeToolRecord<Native> {
  checkShape('overlay', overlay, { keys: new Set(tools.keys()), noun: 'tool' })
  const overlays = new Map(Object.entries(overlay))
  for (const [name, given] of overlays) checkOverlayFields(name, given)
  const record = new Map<string, RecordTool>()
  for (const [name, tool] of tools) record.set(name, { ...tool, ...overlays.get(name) })
  return Object.fromEntries(record) as NativeToolRecord<Native>
}

/** @throws {ConfigError} for an unknown field */
export function checkOverlayFields(name: string, given: ToolOverlay | undefined): void {
  if (given !== undefined) checkShape(`overlay.${name}`, given, OVERLAY)
}

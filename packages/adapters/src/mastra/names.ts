import type { Tool } from '@toolgate/core'
import { createWireNames, toWireName, type WireNames } from '@toolgate/core/expose'
import { sha256Hex } from '@toolgate/core/internal'

/** Mastra rewrites every other name by itself, and then two tools may meet in one. */
const KEPT_BY_MASTRA = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/
const HASH_LENGTH = 10

/** Gives the name by which Mastra and the model know a tool. */
export function toMastraName(tool: Pick<Tool, 'id' | 'namespace' | 'name'>): string {
  const name = toWireName(tool)
  return KEPT_BY_MASTRA.test(name) ? name : `_${name.slice(0, 50)}_${sha256Hex(tool.id).slice(0, HASH_LENGTH)}`
}

export function createMastraNames(tools: Iterable<Tool>): WireNames {
  return createWireNames([...tools], toMastraName)
}

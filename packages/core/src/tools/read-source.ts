import { isDeepStrictEqual } from 'node:util'
import { type FaultCode, messageOf, ToolgateError } from '@toolgate/values'
import { checkJoined } from './groups.ts'
import type { GroupSelectors } from './selector.ts'
import { defineTool, isTool, type Tool, type ToolDefinition } from './tool.ts'

/** A tool that a source offered and the catalog rejected. */
export interface RejectedTool {
  /** The offered name, or the position in the source's list. */
  readonly tool: string
  /** `tool_invalid`, `schema_invalid` or `tool_duplicate`. */
  readonly code: FaultCode
  readonly reason: string
}

interface SourceReading {
  readonly tools: readonly Tool[]
  readonly rejected: readonly RejectedTool[]
}

/**
 * Reads all tools of a source. Invalid tools are rejected with a reason; the others are kept. With `groups`, a tool that
 * joins an unknown group is invalid.
 *
 * @throws {ToolgateError} `source_invalid` if `tools()` returns no list; any error of the source
 */
export function readSource(
  source: { tools(): Iterable<unknown> },
  groups?: Pick<GroupSelectors, 'has' | 'keys'>,
): SourceReading {
  if (typeof source.tools !== 'function') throw new ToolgateError('source_invalid', 'A source of tools has no tools().')
  const offered = source.tools()
  if (typeof offered !== 'object' || offered === null || !(Symbol.iterator in offered))
    throw new ToolgateError('source_invalid', 'A source of tools must return a list from tools(), synchronously.')
  const tools = new Map<string, Tool>()
  const rejected: RejectedTool[] = []
  for (const [i, one] of [...offered].entries()) {
    try {
      const tool = isTool(one) ? one : defineTool(one as ToolDefinition)
      if (groups) checkJoined(tool, groups)
      if (tools.has(tool.id))
        throw new ToolgateError('tool_duplicate', `The source offers "${tool.id}" twice; the first counts.`)
      tools.set(tool.id, tool)
    } catch (error) {
      const code = error instanceof ToolgateError ? error.code : 'tool_invalid'
      rejected.push({ tool: nameOf(one, i), code, reason: messageOf(error) })
    }
  }
  return { tools: [...tools.values()], rejected }
}

/** The tools of a source at its last read. */
export interface Reading extends SourceReading {
  readonly failure: { readonly error: unknown } | undefined
}

export const NOTHING_READ: Reading = { tools: [], rejected: [], failure: undefined }

/** Reads a source again, whole or not at all. An unchanged tool stays the same object. */
export function readAgain(
  source: { tools(): Iterable<unknown> },
  groups: Pick<GroupSelectors, 'has' | 'keys'> | undefined,
  before: Reading = NOTHING_READ,
): Reading {
  try {
    const { tools, rejected } = readSource(source, groups)
    const known = new Map(before.tools.map((tool) => [tool.id, tool]))
    return { tools: tools.map((tool) => same(known.get(tool.id), tool)), rejected, failure: undefined }
  } catch (error) {
    return { ...before, failure: { error } }
  }
}

/** Returns the previous tool if the new one is equal. */
function same(before: Tool | undefined, now: Tool): Tool {
  return before !== undefined && before !== now && isDeepStrictEqual(before, now) ? before : now
}

const MAX_NAME_LENGTH = 128

function nameOf(offered: unknown, index: number): string {
  const name = readName(offered)
  return typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME_LENGTH).toWellFormed() : `tools[${index}]`
}

/** Returns `undefined` for a name whose getter throws. */
function readName(offered: unknown): unknown {
  try {
    return typeof offered === 'object' && offered !== null && 'name' in offered ? offered.name : undefined
  } catch {
    return undefined
  }
}

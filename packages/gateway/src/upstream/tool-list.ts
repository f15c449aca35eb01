import { ConfigError, defineTool } from '@toolgate/core'

import type { Connection } from './connection.ts'
import { clip, isObject } from './json-rpc.ts'
import { LIMITS } from './limits.ts'
import { findParamHeaders, type ParamHeader } from './param-headers.ts'
import { completeResult } from './protocol.ts'
import { type McpTool, UpstreamError, type UpstreamState } from './upstream.ts'

export interface ToolList {
  /** In the server's order, one of each name. */
  readonly tools: readonly McpTool[]
  readonly rejected: UpstreamState['rejected']
  /** By tool; only tools that want any. */
  readonly paramHeaders: ReadonlyMap<string, readonly ParamHeader[]>
  /** How long the server calls the list fresh. */
  readonly ttlMs: number | undefined
  /** Equal lists have equal text. */
  readonly text: string
}

const EMPTY: ToolList = { tools: [], rejected: [], paramHeaders: new Map(), ttlMs: undefined, text: '[]' }

/**
 * Reads all pages of a server's `tools/list`.
 *
 * @throws {UpstreamError} for a list that never ends, is too large or is no list
 */
export async function fetchTools(
  connection: Connection,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<ToolList> {
  if (!isObject(connection.capabilities['tools'])) return EMPTY
  const deadlineMs = performance.now() + options.timeoutMs
  const cursors = new Set<string>()
  const listed: unknown[] = []
  const texts: string[] = []
  let bytes = 0
  let ttlMs: number | undefined
  for (let cursor: string | undefined; ; cursors.add(cursor)) {
    const timeoutMs = Math.max(1, deadlineMs - performance.now())
    const page = await connection.request('tools/list', cursor === undefined ? {} : { cursor }, {
      ...options,
      timeoutMs,
    })
    const { tools, nextCursor, ttlMs: pageTtlMs } = completeResult(connection.era, page)
    if (!Array.isArray(tools)) throw new UpstreamError('upstream_protocol', 'answered tools/list without a list')
    for (const tool of tools as unknown[]) {
      const text = JSON.stringify(tool)
      listed.push(tool)
      texts.push(text)
      bytes += text.length
    }
    if (typeof pageTtlMs === 'number' && pageTtlMs >= 0) ttlMs = Math.min(ttlMs ?? pageTtlMs, pageTtlMs)
    checkSize(listed.length, bytes, cursors.size)
    if (typeof nextCursor !== 'string' || nextCursor === '') break
    if (cursors.has(nextCursor))
      throw new UpstreamError('upstream_protocol', 'lists its tools in a circle: a cursor came twice')
    cursor = nextCursor
  }
  return { ...sift(listed, connection.era === 'modern'), ttlMs, text: `[${texts.join()}]` }
}

function checkSize(tools: number, bytes: number, pages: number): void {
  const beyond =
    tools > LIMITS.tools
      ? `more than ${LIMITS.tools} tools`
      : bytes > LIMITS.listBytes
        ? `tools of more than ${LIMITS.listBytes / 1024 / 1024} MiB`
        : pages >= LIMITS.listPages
          ? `more than ${LIMITS.listPages} pages of tools`
          : undefined
  if (beyond !== undefined) throw new UpstreamError('upstream_too_large', `lists ${beyond}`)
}

/** Parts the tools that can be offered from those that cannot, with the reason. */
function sift(listed: readonly unknown[], modern: boolean): Pick<ToolList, 'tools' | 'rejected' | 'paramHeaders'> {
  const tools = new Map<string, McpTool>()
  const paramHeaders = new Map<string, readonly ParamHeader[]>()
  const rejected: { tool: string; reason: string }[] = []
  for (const [i, tool] of listed.entries()) {
    const name = isObject(tool) ? tool['name'] : undefined
    const problem =
      problemOf(tool, modern) ?? (tools.has(name as string) ? 'is listed twice; the first counts' : undefined)
    if (problem !== undefined) {
      rejected.push({
        tool: typeof name === 'string' && name !== '' ? clip(name, 128) : `tools[${i}]`,
        reason: problem,
      })
      continue
    }
    const usable = tool as McpTool
    tools.set(usable.name, usable)
    const headers = modern ? findParamHeaders(usable.inputSchema) : []
    if (typeof headers !== 'string' && headers.length > 0) paramHeaders.set(usable.name, headers)
  }
  return { tools: [...tools.values()], rejected, paramHeaders }
}

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

function problemOf(tool: unknown, modern: boolean): string | undefined {
  if (!isObject(tool)) return 'is not an object'
  const { name, title, description, inputSchema, outputSchema, annotations, execution } = tool
  if (!isObject(inputSchema)) return 'has no inputSchema that is an object'
  if (inputSchema['type'] !== undefined && inputSchema['type'] !== 'object')
    return 'has an inputSchema that is not for objects'
  if (outputSchema !== undefined && !isObject(outputSchema)) return 'has an outputSchema that is not an object'
  if (!isTextOrAbsent(title)) return 'has a title that is not a string'
  if (!isTextOrAbsent(description)) return 'has a description that is not a string'
  if (annotations !== undefined && !areAnnotations(annotations)) return 'has annotations of the wrong type'
  if (isObject(execution) && execution['taskSupport'] === 'required')
    return 'can only be run as a task, which is not supported'
  if (modern) {
    const headers = findParamHeaders(inputSchema)
    if (typeof headers === 'string') return headers
  }
  return nameProblem(name)
}

/** The catalog's own rules, so that a tool that passes here is one there. */
function nameProblem(name: unknown): string | undefined {
  try {
    defineTool({ name: name as string })
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return clip(error.message.slice(error.path.length).replace(/^: /, ''))
  }
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function areAnnotations(annotations: unknown): boolean {
  if (!isObject(annotations) || !isTextOrAbsent(annotations['title'])) return false
  return HINTS.every((hint) => annotations[hint] === undefined || typeof annotations[hint] === 'boolean')
}

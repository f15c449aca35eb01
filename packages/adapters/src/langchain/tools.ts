import { ConfigError, type Tool } from '@toolgate/core'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/internal'
import { Runnable } from '@langchain/core/runnables'
import type { ClientTool, ServerTool } from '@langchain/core/tools'
import { type Overlay, toNativeRecord, type ToolOverlay } from '../shared/overlay.ts'
import { createNativeExecute, type Invokable } from './native.ts'
import { inputOf } from './schema.ts'

/** A tool as `createAgent` takes it: one that LangChain runs, or the description of one that the provider runs. */
export type LangChainTool = ClientTool | ServerTool

/** LangChain's tools by their names. */
export type NativeTools<Tools extends readonly LangChainTool[]> = { readonly [T in Tools[number] as NameOf<T>]: T }
type NameOf<T> = T extends { readonly name: infer Name extends string } ? Name : string

/**
 * Gives LangChain's tools as a gate takes them. Their names are their ids; zod and JSON schemas validate at the gate, once.
 *
 * What a tool says of itself in `metadata.annotations`, as those of MCP servers do, can only tighten; hints that loosen are
 * for the overlay to give.
 *
 * @throws {ConfigError} for two tools of one name, what is no tool, and an overlay of no tool
 * @example
 * const gate = createGate({ tools: fromLangChain([search, remove], { remove: { tags: ['danger'] } }) })
 */
export function fromLangChain<const Tools extends readonly LangChainTool[]>(
  tools: Tools,
  overlay: Overlay<keyof NativeTools<Tools> & string> = {},
): NativeToolRecord<NativeTools<Tools>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  const overlays = new Map<string, ToolOverlay | undefined>(Object.entries(overlay))
  for (const tool of tools) {
    const name = nameOfTool(tool)
    if (name === undefined) throw new ConfigError('tools', 'a tool of LangChain must have a name')
    if (definitions.has(name))
      throw new ConfigError(`tools.${name}`, 'two tools have this name', { code: 'tool_invalid' })
    definitions.set(name, definitionOf(tool, overlays.get(name)))
  }
  return toNativeRecord(definitions, overlay)
}

/** Gives the name by which a tool is sent. What a provider runs may have none of its own, and is known by its type. */
export function nameOfTool(tool: LangChainTool): string | undefined {
  const { name, type, function: described } = tool as ServerTool & { readonly function?: { readonly name?: unknown } }
  return [name, described?.name, type].find((text) => typeof text === 'string' && text !== '') as string | undefined
}

/** Answers whether LangChain runs it, and not the provider. */
export function isRun(tool: LangChainTool): tool is ClientTool {
  return Runnable.isRunnable(tool)
}

const natives = new WeakMap<NonNullable<Tool['execute']>, ClientTool>()

/** Gives LangChain's own tool, where the gate's is one that was brought in. */
export function nativeOf({ execute }: Pick<Tool, 'execute'>): ClientTool | undefined {
  return execute && natives.get(execute)
}

function definitionOf(tool: LangChainTool, overlay: ToolOverlay | undefined): UnnamedToolDefinition {
  const description = typeof tool.description === 'string' ? tool.description : undefined
  if (!isRun(tool)) return { description }
  const { inputSchema, parse } = inputOf(tool)
  const execute = createNativeExecute(tool as Invokable, parse)
  natives.set(execute, tool)
  const annotations = overlay?.annotations === undefined ? annotationsOf(tool) : undefined
  return { description, inputSchema, execute, ...(annotations && { annotations, hintsTrusted: false }) }
}

function annotationsOf(tool: ClientTool): UnnamedToolDefinition['annotations'] {
  const { metadata } = tool as { readonly metadata?: Record<string, unknown> }
  const annotations = metadata?.['annotations']
  return typeof annotations === 'object' && annotations !== null && !Array.isArray(annotations)
    ? annotations
    : undefined
}

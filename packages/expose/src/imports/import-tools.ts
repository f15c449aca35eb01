import { ConfigError, defineTool, type Tool, type ToolDefinition } from '@toolgate/core'
import { checkObject, checkShape, didYouMean, messageOf, shapeOf } from '@toolgate/values'
import { OVERLAY, RESERVED_NAMESPACES, type ToolOverlay } from '@toolgate/core/tools'
import type { ExposeWarning } from '../exposure.ts'
import { toWireName } from '../names.ts'
import { isObject, toText } from '../schema/node.ts'
import {
  type ForeignDefinition,
  notAFunction,
  readAnthropic,
  readBedrock,
  type ReadEntry,
  readGemini,
  readOpenAi,
} from './definitions.ts'

export interface ImportOptions {
  /** The namespace of all tools. Default: `a__b` becomes `a:b`, as `expose` writes it, and any other name has none. */
  readonly namespace?: string | undefined
  /** Returns the id for a name, such as `names.toId` of the exposure that wrote the definitions. */
  readonly toId?: ((name: string) => string | undefined) | undefined
  /** The function of each tool, by its name in the definitions. A tool without one can be decided and shown, not called. */
  readonly execute?: Readonly<Record<string, NonNullable<ToolDefinition['execute']>>> | undefined
  /** The host's overlay of each tool, by its name in the definitions. */
  readonly overlay?: Readonly<Record<string, ToolOverlay>> | undefined
}

export interface ImportedTools {
  readonly tools: readonly Tool[]
  /** One for each field that a tool cannot keep. */
  readonly warnings: readonly ExposeWarning[]
  /** The entries that did not become tools. */
  readonly errors: readonly ImportError[]
}

interface ImportError {
  /** The name, or without one the place in the list: `tools[2]`. */
  readonly tool: string
  readonly code: 'not_a_function' | 'tool_invalid' | 'tool_duplicate'
  readonly message: string
}

/**
 * Returns the tools of a request to OpenAI, of Chat Completions or Responses, as a gate takes them.
 *
 * Keeps names, descriptions, schemas and each tool's `strict`. Fields that a tool cannot keep become warnings; entries that
 * no gate can govern become error entries. All other tools are returned.
 *
 * @throws {ConfigError} for an unknown option, and for `execute` or `overlay` of a name that no definition has
 * @example
 * const { tools } = fromOpenAiTools(definitions, { execute: { search: ({ q }) => find(q) } })
 * const gate = createGate({ tools, policy: { deny: ['tag:danger'] } })
 */
export function fromOpenAiTools(definitions: readonly object[], options?: ImportOptions): ImportedTools {
  return importTools('fromOpenAiTools', definitions, readOpenAi, options)
}

/** Returns the tools of a request to Anthropic's Messages as a gate takes them. See {@link fromOpenAiTools}. */
export function fromAnthropicTools(definitions: readonly object[], options?: ImportOptions): ImportedTools {
  return importTools('fromAnthropicTools', definitions, readAnthropic, options)
}

/**
 * Returns the tools of a request to Gemini, or function declarations alone, as a gate takes them; schemas may be in
 * either of its two forms. See {@link fromOpenAiTools}.
 */
export function fromGeminiTools(definitions: readonly object[], options?: ImportOptions): ImportedTools {
  return importTools('fromGeminiTools', definitions, readGemini, options)
}

/** Returns the tools of a `toolConfig` of Bedrock's Converse as a gate takes them. See {@link fromOpenAiTools}. */
export function fromBedrockTools(definitions: readonly object[], options?: ImportOptions): ImportedTools {
  return importTools('fromBedrockTools', definitions, readBedrock, options)
}

const OPTIONS = shapeOf<ImportOptions>({ namespace: true, toId: true, execute: true, overlay: true })

function importTools(
  from: string,
  definitions: readonly object[],
  read: ReadEntry,
  options: ImportOptions = {},
): ImportedTools {
  checkShape(from, options, OPTIONS)
  checkOptions(from, options)
  if (!Array.isArray(definitions)) throw new ConfigError(from, 'must be given the list of tools of a request')
  const tools = new Map<string, Tool>()
  const names = new Set<string>()
  const warnings: ExposeWarning[] = []
  const errors: ImportError[] = []
  for (const [i, entry] of (definitions as readonly unknown[]).entries()) {
    for (const definition of isObject(entry) ? read(entry) : [notAFunction(typeof entry)]) {
      if ('notAFunction' in definition) {
        errors.push(ungovernable(`tools[${i}]`, definition.notAFunction))
        continue
      }
      const name = definition.wireName ?? (typeof definition.name === 'string' ? definition.name : `tools[${i}]`)
      names.add(name)
      const tool = toTool(name, definition, options)
      if ('code' in tool) errors.push(tool)
      else if (tools.has(tool.id))
        errors.push({ tool: name, code: 'tool_duplicate', message: `There are two tools with the id "${tool.id}".` })
      else {
        tools.set(tool.id, tool)
        warnings.push(...warningsOf(tool, definition))
      }
    }
  }
  checkNames(`${from}.execute`, options.execute, names)
  checkNames(`${from}.overlay`, options.overlay, names)
  return Object.freeze({
    tools: Object.freeze([...tools.values()]),
    warnings: Object.freeze(warnings),
    errors: Object.freeze(errors),
  })
}

function checkOptions(from: string, { namespace, toId, execute, overlay }: ImportOptions): void {
  if (namespace !== undefined && typeof namespace !== 'string')
    throw new ConfigError(`${from}.namespace`, 'must be a text')
  if (toId !== undefined && typeof toId !== 'function') throw new ConfigError(`${from}.toId`, 'must be a function')
  if (execute !== undefined) checkObject(`${from}.execute`, execute)
  if (overlay !== undefined) checkObject(`${from}.overlay`, overlay)
}

function ungovernable(tool: string, what: string): ImportError {
  return { tool, code: 'not_a_function', message: `${tool} is no function but ${what}, which no gate can govern.` }
}

/** The fields of a definition are checked where every tool's are. */
function toTool(name: string, definition: ForeignDefinition, options: ImportOptions): Tool | ImportError {
  const { description, inputSchema, outputSchema, strict } = definition
  const overlay = ownValue(options.overlay, name)
  if (overlay !== undefined) checkShape(`overlay.${name}`, overlay, OVERLAY)
  try {
    return defineTool({
      ...overlay,
      ...toParts(name, definition, options),
      description: description ?? undefined,
      inputSchema,
      outputSchema,
      strict: strict ?? undefined,
      execute: ownValue(options.execute, name),
    } as ToolDefinition)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { tool: name, code: 'tool_invalid', message: messageOf(error) }
  }
}

function toParts(
  wireName: string,
  definition: ForeignDefinition,
  options: ImportOptions,
): { readonly name: unknown; readonly namespace: string | undefined } {
  const { name } = definition
  const id: unknown = options.toId?.(wireName)
  if (typeof id === 'string') return splitAt(id, ':')
  const namespace = options.namespace ?? definition.namespace
  if (typeof namespace === 'string') return { name, namespace }
  const parts = splitAt(typeof name === 'string' ? name : '', '__')
  const isOurs = parts.namespace !== undefined && toWireName({ id: '', ...parts }) === name
  return isOurs && !RESERVED_NAMESPACES.has(parts.namespace) ? parts : { name, namespace: undefined }
}

function splitAt(text: string, mark: string): { readonly name: string; readonly namespace: string | undefined } {
  const at = text.indexOf(mark)
  if (at === -1) return { name: text, namespace: undefined }
  return { namespace: text.slice(0, at), name: text.slice(at + mark.length) }
}

function ownValue<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record && Object.hasOwn(record, name) ? record[name] : undefined
}

function checkNames(path: string, record: object | undefined, names: ReadonlySet<string>): void {
  for (const name of Object.keys(record ?? {}))
    if (!names.has(name))
      throw new ConfigError(`${path}.${name}`, `no definition has this name${didYouMean(name, names)}`)
}

function warningsOf(tool: Tool, { lost, notes = [] }: ForeignDefinition): readonly ExposeWarning[] {
  const fields = Object.entries(lost).map(([feature, from]) => ({ path: '', feature, from }))
  return [...fields, ...notes].map(({ path, feature, from }) => ({
    tool: tool.id,
    path,
    feature,
    from: textOf(from),
    action: 'removed',
  }))
}

/** A field of a foreign definition may have any value, even one that JSON cannot express. */
function textOf(value: unknown): string {
  try {
    return toText(value)
  } catch {
    return 'a value that is not JSON'
  }
}

import type { Caller } from '../ports/caller.ts'
import { type Cancelling, checkShape, ConfigError, isErrorOf, messageOf, shapeOf } from '@toolgate/values'
import { frozenCopy, isObject, type JsonObject } from '@toolgate/values/json'
import { findSchemaProblem } from './schema.ts'
import {
  isStandardSchema,
  type ParseInput,
  type StandardSchema,
  toJsonSchema,
  toParseInput,
} from './standard-schema.ts'
import { checkName, checkNamespace, type ItemKind, toToolId } from './tool-id.ts'

/** A JSON Schema document that is an object. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * MCP's tool annotations.
 *
 * Absent hints have the defaults of MCP 2026-07-28: not read-only, destructive unless read-only, not idempotent, open
 * world.
 */
export interface ToolAnnotations {
  readonly title?: string | undefined
  readonly readOnlyHint?: boolean | undefined
  readonly destructiveHint?: boolean | undefined
  readonly idempotentHint?: boolean | undefined
  readonly openWorldHint?: boolean | undefined
}

/** An icon of a tool (MCP 2025-11-25, `Icon`). Fields beyond these are kept. */
export interface ToolIcon {
  /** A URL or a `data:` URI. */
  readonly src: string
  readonly mimeType?: string | undefined
  /** Such as `48x48`, or `any` for an icon that scales. */
  readonly sizes?: readonly string[] | undefined
  readonly theme?: 'light' | 'dark' | undefined
}

/** MCP's annotations of resources and templates. */
export interface ItemAnnotations {
  readonly audience?: readonly string[] | undefined
  readonly priority?: number | undefined
  readonly lastModified?: string | undefined
}

/** An argument of a prompt (MCP, `PromptArgument`). Fields beyond these are kept. */
export interface PromptArgument {
  readonly name: string
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly required?: boolean | undefined
}

/** MCP's `_meta`: fields for clients, by prefixed names. */
export type ToolMeta = { readonly [name: string]: unknown }

/**
 * `checked`: an input that the schema rejects is refused. `coerced`: first, texts become the numbers, booleans, lists,
 * objects or nulls that the schema wants; then it is checked, decided, recorded and run. `server`: any object is decided as it
 * came, and the tool validates it.
 */
export const INPUT_HANDLINGS = ['checked', 'coerced', 'server'] as const
export type InputHandling = (typeof INPUT_HANDLINGS)[number]

/** The texts and annotations of a tool as its server lists them. */
interface OriginalFields {
  readonly title?: string | undefined
  readonly description: string
  readonly annotations: ToolAnnotations
}

/** A tool as its author writes it. Only `name` is required. */
// oxlint-disable-next-line typescript/no-explicit-any -- `unknown` would reject an `execute` that destructures its input
export interface ToolDefinition<Input = any, Output = unknown> {
  readonly name: string
  readonly namespace?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  /**
   * JSON Schema, draft-04 to 2020-12 (chosen by `$schema`), or a Standard Schema (zod, valibot, ArkType), which then
   * validates the input itself. Default: any object.
   */
  readonly inputSchema?: JsonSchema | StandardSchema<Input> | undefined
  readonly outputSchema?: JsonSchema | StandardSchema | undefined
  /**
   * What happens to an input that the JSON Schema rejects. Default `checked`. Not part of the definition's hash. A Standard
   * Schema always validates the input itself.
   */
  readonly inputs?: InputHandling | undefined
  readonly tags?: readonly string[] | undefined
  readonly category?: string | undefined
  /** The caller must have all of these scopes. */
  readonly requiredScopes?: readonly string[] | undefined
  /** Groups of the gate that the tool joins, in addition to the groups that select it. Not part of the definition's hash. */
  readonly groups?: readonly string[] | undefined
  /**
   * Labels of the tool's output, such as `private`. Only the host sets them: a server's own labels do not count. Not part
   * of the definition's hash.
   */
  readonly labels?: readonly string[] | undefined
  /**
   * `true` if the output is trusted: only the operator and the user can write what the tool returns. Otherwise the output
   * is `untrusted`.
   */
  readonly trusted?: boolean | undefined
  /** Input fields that say where the tool sends data, such as `to` and `cc`. Not part of the definition's hash. */
  readonly addressees?: readonly string[] | undefined
  readonly annotations?: ToolAnnotations | undefined
  readonly icons?: readonly ToolIcon[] | undefined
  readonly _meta?: ToolMeta | undefined
  /**
   * Further fields of an MCP definition, such as `execution`, which clients get unchanged. Must not use the name of a known
   * field.
   */
  readonly fields?: JsonObject | undefined
  /** The server's own texts and annotations, if the host replaces them. Pins compare these. */
  readonly original?: OriginalFields | undefined
  /** Whether providers must guarantee matching inputs. `expose` can override it. */
  readonly strict?: boolean | undefined
  /** `false` if the annotations come from an untrusted party, such as an upstream server. Default `true`. */
  readonly hintsTrusted?: boolean | undefined
  /**
   * Milliseconds until a call times out, if the host sets no deadline; `Infinity` for none. Default: the gate's. Not part
   * of the definition's hash.
   */
  readonly deadlineMs?: number | undefined
  readonly execute?: ((input: Input, call: CallContext) => Output | Promise<Output>) | undefined
}

/**
 * A checked tool with all defaults filled in, or a resource, a template or a prompt. It is frozen, including its
 * schemas.
 */
export interface Tool {
  /**
   * `namespace:name`, or `name` without a namespace; `resource:<server>:<uri>` and `prompt:<server>:<name>` for other
   * kinds. Compared exactly, code point by code point.
   */
  readonly id: string
  readonly kind: ItemKind
  /** For items that are not tools: the name of the server. */
  readonly namespace: string | undefined
  readonly name: string
  /** As written. {@link titleOf} falls back to the title of the annotations. */
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema | undefined
  /** Absent: `checked`. */
  readonly inputs: InputHandling | undefined
  /** Sorted, without repetition. */
  readonly tags: readonly string[]
  readonly category: string | undefined
  readonly requiredScopes: readonly string[]
  readonly annotations: ToolAnnotations & ItemAnnotations
  readonly icons: readonly ToolIcon[] | undefined
  readonly _meta: ToolMeta | undefined
  /** Fields of an MCP definition that have no property of their own, such as `execution`. Clients get them unchanged. */
  readonly fields: JsonObject | undefined
  /** The server's own texts and annotations, if the host replaced them. */
  readonly original: OriginalFields | undefined
  /** The URI of a resource; the URI template of a template. */
  readonly uri: string | undefined
  /** The MIME type of a resource or a template. */
  readonly mimeType: string | undefined
  /** The size of a resource, in bytes. */
  readonly size: number | undefined
  /** The arguments of a prompt. */
  readonly arguments: readonly PromptArgument[] | undefined
  readonly strict: boolean | undefined
  readonly hintsTrusted: boolean
  /** Groups of the gate that the tool joins, sorted. */
  readonly groups: readonly string[]
  /** The labels of its output in addition to `untrusted`, sorted. */
  readonly labels: readonly string[]
  readonly trusted: boolean
  /** Input fields that say where the tool sends data, sorted. */
  readonly addressees: readonly string[]
  /** Milliseconds until a call times out, if the host sets no deadline. Absent: the gate's deadline. */
  readonly deadlineMs: number | undefined
  /** The validation of a Standard Schema, which replaces that of the JSON Schema. */
  readonly parseInput: ParseInput | undefined
  readonly execute: ((input: never, call: CallContext) => unknown) | undefined
}

/** Returns the title of a tool, or the title in its annotations. */
export function titleOf({ title, annotations }: Pick<Tool, 'title' | 'annotations'>): string | undefined {
  return title ?? annotations.title
}

/** The fields of a listed tool that have a property of their own. */
const LISTED_FIELDS: ReadonlySet<string> = new Set([
  'name',
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  'icons',
  '_meta',
])

/** The progress of a call, as in MCP's progress notification. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** The context of an execution, the second argument of `execute`. */
export interface CallContext extends Cancelling {
  readonly callId: string
  readonly tool: Tool
  readonly caller: Caller
  /** Aborts when the caller disconnects and at the deadline. `onAbort` is cheaper. */
  readonly signal: AbortSignal
  readonly onProgress: ((progress: Progress) => void) | undefined
  /** The execution options of a framework, as the host passed them. */
  readonly context: unknown
}

const ANY_OBJECT: JsonSchema = Object.freeze({ type: 'object' })
const NO_ANNOTATIONS: ToolAnnotations = Object.freeze({})

/**
 * Returns a checked, frozen tool. Later changes of the definition's objects do not affect it.
 *
 * @throws {ConfigError} `tool_invalid` for an invalid name, namespace or other field; `schema_invalid` for an invalid
 * schema, one with more than 32 levels or 64 KiB, or one that refers to another document
 * @example
 * const search = defineTool({ name: 'search', tags: ['read'], execute: ({ q }) => find(q) })
 */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export function defineTool<Input = any, Output = unknown>(definition: ToolDefinition<Input, Output>): Tool {
  if (!OBJECT[1](definition)) throw new ConfigError('tool', 'a tool must be an object', { code: 'tool_invalid' })
  const { name, namespace } = definition
  checkIsTool(definition)
  checkName(name)
  checkNamespace(namespace)
  const id = toToolId(namespace, name)
  checkFields(`tool "${id}"`, definition)
  return makeItem({ ...NO_ITEM, kind: 'tool', id, namespace, name }, definition)
}

/** The fields that differ by kind, already checked. */
export type ItemParts = Pick<Tool, 'kind' | 'id' | 'namespace' | 'name' | 'uri' | 'mimeType' | 'size' | 'arguments'>

const NO_ITEM = { uri: undefined, mimeType: undefined, size: undefined, arguments: undefined }

/** The fields that all kinds share. */
export interface ItemFields extends Omit<ToolDefinition, 'annotations'> {
  readonly annotations?: Tool['annotations'] | undefined
}

/**
 * Returns a checked, frozen item of any kind.
 *
 * @throws {ConfigError} like `defineTool`, for every field that is not in `own`
 */
export function makeItem(own: ItemParts, definition: ItemFields): Tool {
  const parts = plainParts(own, definition)
  const { title, description, inputSchema, outputSchema, annotations, category, tags, requiredScopes } = parts
  const tool: Tool = Object.freeze({
    ...own,
    title,
    description: description ?? '',
    inputSchema: inputSchema ?? ANY_OBJECT,
    outputSchema,
    inputs: checkInputs(own, definition.inputs),
    tags: sortedSet(tags),
    category,
    requiredScopes: sortedSet(requiredScopes),
    annotations: annotations ?? NO_ANNOTATIONS,
    icons: parts.icons,
    _meta: parts._meta,
    fields: parts.fields,
    original: parts.original,
    strict: parts.strict,
    hintsTrusted: definition.hintsTrusted ?? true,
    groups: sortedSet(checkTexts(own, 'groups', definition.groups)),
    labels: sortedSet(checkTexts(own, 'labels', definition.labels)),
    trusted: checkTrusted(own, definition.trusted),
    addressees: sortedSet(checkTexts(own, 'addressees', definition.addressees)),
    deadlineMs: checkDeadline(own, definition.deadlineMs),
    parseInput: parserOf(definition),
    execute: checkExecute(own, definition.execute),
  })
  if (tool.parseInput) parsers.set(tool.inputSchema, tool.parseInput)
  made.add(tool)
  return tool
}

const DEFINITION = shapeOf<ToolDefinition & Pick<Tool, 'parseInput' | keyof ItemParts>>(
  {
    name: true,
    namespace: true,
    title: true,
    description: true,
    inputSchema: true,
    outputSchema: true,
    inputs: true,
    tags: true,
    category: true,
    requiredScopes: true,
    groups: true,
    annotations: true,
    icons: true,
    _meta: true,
    fields: true,
    original: true,
    labels: true,
    trusted: true,
    addressees: true,
    strict: true,
    hintsTrusted: true,
    deadlineMs: true,
    execute: true,
    // A copy of a tool also has these: \`{ ...tool, tags: ['write'] }\`.
    id: true,
    kind: true,
    uri: true,
    mimeType: true,
    size: true,
    arguments: true,
    parseInput: true,
  },
  'field',
)
const ANNOTATIONS = shapeOf<ToolAnnotations>(
  { title: true, readOnlyHint: true, destructiveHint: true, idempotentHint: true, openWorldHint: true },
  'field',
)

/** A misspelt field, such as a scope, would remove a restriction. */
function checkFields(path: string, definition: ToolDefinition): void {
  const { annotations, hintsTrusted } = definition
  try {
    checkShape(path, definition, DEFINITION)
    // Annotations with `hintsTrusted` come from a server, which may use unknown keys.
    if (hintsTrusted === undefined && annotations !== undefined)
      checkShape(`${path}.annotations`, annotations, ANNOTATIONS)
  } catch (error) {
    if (!isErrorOf(error, ConfigError)) throw error
    throw new ConfigError(error.path, error.problem, { code: 'tool_invalid' })
  }
}

/** A resource or a prompt that was defined as a tool would be allowed by `*`. */
function checkIsTool(definition: ToolDefinition & Partial<ItemParts>): void {
  const { kind = 'tool', name: id } = definition
  if (kind !== 'tool') throw invalid({ kind: 'tool', id }, `is a ${kind}, which defineTool does not make`)
  for (const field of ['uri', 'mimeType', 'size', 'arguments'] as const)
    if (definition[field] !== undefined) throw invalid({ kind, id }, `a tool has no ${field}`)
}

/** Parsers by the JSON Schema of a Standard Schema. A copy of a tool has the same schema, so it is validated the same way. */
const parsers = new WeakMap<object, ParseInput>()

function parserOf({ inputSchema }: ToolDefinition): ParseInput | undefined {
  if (isStandardSchema(inputSchema)) return toParseInput(inputSchema)
  return inputSchema && parsers.get(inputSchema)
}

/** The tools that `defineTool` made. */
const made = new WeakSet<object>()

/** Returns whether `defineTool` made this value, which is then checked and frozen. */
export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && made.has(value)
}

type CheckPart = readonly [what: string, passes: (value: unknown) => boolean]

const TEXT: CheckPart = ['a string', (value) => typeof value === 'string']
const TEXTS: CheckPart = ['a list of strings', isTexts]
const OBJECT: CheckPart = ['an object', isObject]

const ICONS: CheckPart = ['a list of icons, each with its src', (value) => Array.isArray(value) && value.every(isIcon)]

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function isIcon(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'src' in value && typeof value.src === 'string'
}

/** A further field with the name of a known one would replace it in a list. */
const FURTHER: CheckPart = [
  'an object without the names of known fields',
  (value) => isObject(value) && Object.keys(value).every((field) => !LISTED_FIELDS.has(field)),
]

const FLAG: CheckPart = ['true or false', (value) => typeof value === 'boolean']

const PLAIN_FIELDS = [
  ['title', TEXT],
  ['description', TEXT],
  ['inputSchema', OBJECT],
  ['outputSchema', OBJECT],
  ['annotations', OBJECT],
  ['icons', ICONS],
  ['_meta', OBJECT],
  ['fields', FURTHER],
  ['original', OBJECT],
  ['strict', FLAG],
  ['category', TEXT],
  ['tags', TEXTS],
  ['requiredScopes', TEXTS],
] as const satisfies readonly (readonly [string, CheckPart])[]
type PlainField = (typeof PLAIN_FIELDS)[number][0]

/** Copies and freezes the fields that are data, so that a definition always has a canonical form. */
function plainParts(of: NamedTool, definition: ToolDefinition): PlainParts {
  const parts: Partial<Record<PlainField, unknown>> = {}
  for (const [field, [what, passes]] of PLAIN_FIELDS) {
    const value: unknown = isSchemaField(field) ? schemaOf(of, definition, field) : definition[field]
    if (value === undefined) continue
    if (!passes(value)) throw invalid(of, `${field} must be ${what}`, codeFor(field))
    parts[field] = value
  }
  const copy = frozenCopy(parts)
  if ('problem' in copy) {
    const { pointer, message } = copy.problem
    throw invalid(of, `${pointer.slice(1)} ${message}`, codeFor(pointer.split('/')[1]))
  }
  const plain = copy.value as PlainParts
  for (const field of SCHEMA_FIELDS) {
    const problem = plain[field] && findSchemaProblem(plain[field])
    if (problem) throw invalid(of, `${field}${problem.pointer} ${problem.message}`, 'schema_invalid')
  }
  return plain
}

type PlainParts = Partial<Pick<Tool, PlainField>>

const SCHEMA_FIELDS = ['inputSchema', 'outputSchema'] as const

function isSchemaField(field: string | undefined): field is (typeof SCHEMA_FIELDS)[number] {
  return field === 'inputSchema' || field === 'outputSchema'
}

/** Returns the JSON Schema of a field. Converts a Standard Schema. */
function schemaOf(of: NamedTool, definition: ToolDefinition, field: (typeof SCHEMA_FIELDS)[number]): unknown {
  const schema = definition[field]
  if (!isStandardSchema(schema)) return schema
  try {
    return toJsonSchema(schema, field === 'inputSchema' ? 'input' : 'output')
  } catch (error) {
    throw invalid(of, `${field} ${messageOf(error)}`, 'schema_invalid')
  }
}

function codeFor(field: string | undefined): 'schema_invalid' | 'tool_invalid' {
  return isSchemaField(field) ? 'schema_invalid' : 'tool_invalid'
}

function checkExecute(of: NamedTool, execute: ToolDefinition['execute']): Tool['execute'] {
  if (execute !== undefined && typeof execute !== 'function') throw invalid(of, 'execute must be a function')
  return execute
}

function checkDeadline(of: NamedTool, deadlineMs: unknown): number | undefined {
  if (deadlineMs === undefined || (typeof deadlineMs === 'number' && deadlineMs > 0)) return deadlineMs
  throw invalid(of, 'deadlineMs must be a number of milliseconds above 0')
}

function checkTexts(of: NamedTool, field: string, texts: unknown): readonly string[] | undefined {
  if (texts === undefined || isTexts(texts)) return texts
  throw invalid(of, `${field} must be ${TEXTS[0]}`)
}

function checkInputs(of: NamedTool, inputs: unknown): InputHandling | undefined {
  const known = INPUT_HANDLINGS.find((one) => one === inputs)
  if (inputs === undefined || known) return known
  throw invalid(of, `inputs must be one of ${INPUT_HANDLINGS.join(', ')}`)
}

function checkTrusted(of: NamedTool, trusted: unknown = false): boolean {
  if (FLAG[1](trusted)) return trusted as boolean
  throw invalid(of, `trusted must be ${FLAG[0]}`)
}

type NamedTool = Pick<Tool, 'kind' | 'id'>

function invalid(
  { kind, id }: NamedTool,
  problem: string,
  code: 'schema_invalid' | 'tool_invalid' = 'tool_invalid',
): ConfigError {
  return new ConfigError(`${kind} "${id}"`, problem, { code })
}

function sortedSet(values: readonly string[] | undefined): readonly string[] {
  return Object.freeze([...new Set(values)].toSorted())
}

import { ConfigError } from '../errors.ts'
import type { CallContext } from './call-context.ts'
import { checkName, checkNamespace, toToolId } from './tool-id.ts'

/** A JSON Schema document that is an object. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * MCP's tool annotations.
 *
 * Absent ones take the defaults of MCP 2026-07-28: not read-only, destructive
 * unless read-only, not idempotent, open world.
 */
export interface ToolAnnotations {
  readonly title?: string
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** What an author writes. Everything but `name` may be absent. */
// oxlint-disable-next-line typescript/no-explicit-any -- `unknown` would reject an `execute` that destructures its input
export interface ToolDefinition<Input = any, Output = unknown> {
  readonly name: string
  readonly namespace?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** JSON Schema, draft-07 or 2020-12 (chosen by `$schema`). Default: any object. */
  readonly inputSchema?: JsonSchema | undefined
  readonly outputSchema?: JsonSchema | undefined
  readonly tags?: readonly string[] | undefined
  readonly category?: string | undefined
  /** A caller must hold all of them. */
  readonly requiredScopes?: readonly string[] | undefined
  readonly annotations?: ToolAnnotations | undefined
  /** `false` when the annotations are somebody else's claim, as an upstream server's are. Default `true`. */
  readonly hintsTrusted?: boolean | undefined
  readonly execute?: ((input: Input, call: CallContext) => Output | Promise<Output>) | undefined
}

/** One callable: a definition that was checked, with nothing left to default. Frozen. */
export interface Tool {
  /** `namespace:name`, or `name` without a namespace. Compared exactly, code point by code point. */
  readonly id: string
  readonly namespace: string | undefined
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: JsonSchema
  readonly outputSchema: JsonSchema | undefined
  /** Sorted, without repetition. */
  readonly tags: readonly string[]
  readonly category: string | undefined
  readonly requiredScopes: readonly string[]
  readonly annotations: ToolAnnotations
  readonly hintsTrusted: boolean
  readonly execute: ((input: never, call: CallContext) => unknown) | undefined
}

const ANY_OBJECT: JsonSchema = Object.freeze({ type: 'object' })

/**
 * Gives a checked, frozen Tool.
 *
 * @throws {ConfigError} `tool_invalid` for a name, namespace or schema that cannot be used
 * @example
 * const search = defineTool({ name: 'search', tags: ['read'], execute: ({ q }) => find(q) })
 */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export function defineTool<Input = any, Output = unknown>(definition: ToolDefinition<Input, Output>): Tool {
  const { name, namespace } = definition
  checkName(name)
  checkNamespace(namespace)
  const id = toToolId(namespace, name)
  const tool: Tool = Object.freeze({
    id,
    namespace,
    name,
    title: definition.title ?? definition.annotations?.title,
    description: definition.description ?? '',
    inputSchema: checkSchema(id, 'inputSchema', definition.inputSchema ?? ANY_OBJECT),
    outputSchema: definition.outputSchema && checkSchema(id, 'outputSchema', definition.outputSchema),
    tags: sortedSet(definition.tags),
    category: definition.category,
    requiredScopes: sortedSet(definition.requiredScopes),
    annotations: Object.freeze({ ...definition.annotations }),
    hintsTrusted: definition.hintsTrusted ?? true,
    execute: definition.execute,
  })
  made.add(tool)
  return tool
}

const made = new WeakSet<object>()

/** Answers whether a value is a Tool that `defineTool` made: checked and frozen. */
export function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && made.has(value)
}

function checkSchema(id: string, field: string, schema: unknown): JsonSchema {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new ConfigError(`tool "${id}"`, `${field} must be a JSON Schema object`, { code: 'tool_invalid' })
  }
  return schema as JsonSchema
}

function sortedSet(values: readonly string[] | undefined): readonly string[] {
  return Object.freeze([...new Set(values)].toSorted())
}

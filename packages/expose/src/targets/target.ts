import type { JsonSchema, ToolAnnotations } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import type { ToolIcon, ToolMeta } from '@toolgate/core/tools'
import type { ExposeOptions } from '../options.ts'
import type { TargetDialect } from '../schema/dialect.ts'

/** A tool with its schemas in the target's dialect. */
export interface Parts {
  readonly name: string
  readonly title: string | undefined
  /** Not empty. */
  readonly description: string | undefined
  readonly input: JsonSchema
  readonly output: JsonSchema | undefined
  /** `undefined` if there are none. */
  readonly annotations: ToolAnnotations | undefined
  readonly icons: readonly ToolIcon[] | undefined
  readonly _meta: ToolMeta | undefined
  /** Fields of an MCP definition without a property of their own. */
  readonly fields: JsonObject | undefined
  readonly strict: boolean
  readonly deferred: boolean
}

export interface NamedExposed<Definition extends object = object> {
  readonly name: string
  readonly definition: Definition
}

/** Which of the tools may be called at a step, by their names on the wire. */
type Mask = readonly string[]

/** Fields of a tool that only some targets have. */
export type Extra = 'title' | 'annotations' | 'icons' | '_meta' | 'fields'
export const EXTRAS: readonly Extra[] = ['title', 'annotations', 'icons', '_meta', 'fields']

/** A provider, protocol or framework, whose tools are each a `Definition`. */
export interface Target<Definition extends object = object> {
  /** How input schemas are written, and in strict mode. Without one there is no such mode. */
  readonly dialect: TargetDialect
  readonly strictDialect?: TargetDialect
  /** How output schemas are written. Without one they have no place. */
  readonly outputDialect?: TargetDialect
  /** The fields that it has. */
  readonly keeps: ReadonlySet<Extra>
  readonly maxTools?: number
  /** Characters. */
  readonly maxDescription?: number
  readonly canMask: boolean
  readonly canDefer: boolean
  /** Whether its SDK changes its arguments. Then each exposure has copies of its own. */
  readonly writesInto?: boolean
  /** The names of the provider's own tools. */
  readonly reserved?: ReadonlySet<string>
  /** Returns a tool's name in this target, from its usual name. */
  toName?(name: string): string
  define(parts: Parts): Definition
  /** Returns the tools of a request, and the fields of the request that carry them. */
  collect(
    named: readonly NamedExposed<Definition>[],
    choice: { readonly mask: Mask | undefined; readonly deferred: boolean; readonly options: ExposeOptions },
  ): { readonly tools: object; readonly request: Readonly<Record<string, unknown>> }
}

/** A schema whose root has the type `object`. */
export interface ObjectSchema {
  type: 'object'
  [keyword: string]: unknown
}

/** Returns an input schema with the SDKs' type: the writer has made its root an object. */
export function objectSchema(input: JsonSchema): ObjectSchema {
  if (!isObjectSchema(input)) throw new TypeError('The root of an input schema must be an object.')
  return input
}

function isObjectSchema(schema: JsonSchema): schema is ObjectSchema {
  return schema['type'] === 'object'
}

/** Leaves out the fields that are `undefined`. */
export function present<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const kept: Record<string, unknown> = {}
  for (const key in fields) if (fields[key] !== undefined) kept[key] = fields[key]
  return kept as never
}

/** The request of a provider whose `tools` must not be an empty list. */
export function withTools(tools: readonly object[], more: object = {}): Readonly<Record<string, unknown>> {
  return tools.length === 0 ? {} : { tools, ...more }
}

export const NOTHING: ReadonlySet<never> = new Set()
export const EVERYTHING: ReadonlySet<Extra> = new Set(EXTRAS)

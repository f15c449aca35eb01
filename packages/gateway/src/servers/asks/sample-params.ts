import { isObject, type JsonObject } from '@toolgate/values/json'
import { checkSize, invalid, isTexts, named } from './ask-checks.ts'
import type { AskRules } from './ask-params.ts'

/** The fields that MCP defines for a sampling request, each with its check and the name of its type. */
const FIELDS: Readonly<Record<string, readonly [fits: (value: unknown) => boolean, type: string]>> = {
  messages: [(value) => areAll(value, isMessage), 'a list of messages with a role and content'],
  maxTokens: [Number.isSafeInteger, 'an integer'],
  systemPrompt: [isText, 'a string'],
  modelPreferences: [isObject, 'an object'],
  temperature: [Number.isFinite, 'a number'],
  stopSequences: [isTexts, 'a list of strings'],
  metadata: [isObject, 'an object'],
  tools: [(value) => areAll(value, isTool), 'a list of tools with a name and an inputSchema'],
  toolChoice: [isObject, 'an object'],
}
const REQUIRED = ['messages', 'maxTokens'] as const

/** Whether the client's model is to use tools of the server, which needs a capability of its own (MCP 2025-11-25). */
export function hasTools({ tools, toolChoice }: JsonObject): boolean {
  return tools !== undefined || toolChoice !== undefined
}

/**
 * Returns the params of a sampling request for the client: the fields that MCP defines, with the server's name first.
 *
 * `includeContext` is left out, which MCP permits: for the client, "this server" is the gateway with all of its servers.
 *
 * @throws {RpcError} for a field that MCP does not allow
 */
export function toSample(params: JsonObject, { server }: AskRules): JsonObject {
  checkSize(params)
  const missing = REQUIRED.find((field) => params[field] === undefined)
  if (missing !== undefined) throw invalid(`${missing} is required`)
  const kept = Object.entries(FIELDS).filter(([field]) => params[field] !== undefined)
  for (const [field, [fits, type]] of kept) if (!fits(params[field])) throw invalid(`${field} must be ${type}`)
  const { systemPrompt = '' } = params
  const fields = Object.fromEntries(kept.map(([field]) => [field, params[field]]))
  return { ...fields, systemPrompt: named(server, systemPrompt as string) }
}

function areAll(value: unknown, fits: (item: JsonObject) => boolean): boolean {
  return Array.isArray(value) && value.every((item) => isObject(item) && fits(item))
}

function isMessage({ role, content }: JsonObject): boolean {
  return isText(role) && (isObject(content) || areAll(content, () => true))
}

function isTool({ name, inputSchema }: JsonObject): boolean {
  return isText(name) && isObject(inputSchema)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import type { ClientCapabilities } from '../servers/asks/client-link.ts'
import { RpcFault } from '../model/protocol.ts'

/** The capabilities that servers may need to know. A session stores only these. */
const FIELDS = { elicitation: ['form', 'url'], sampling: ['context', 'tools'], roots: ['listChanged'] } as const
/** The maximum length of an extension's settings, as JSON text. */
const MAX_EXTENSION_CHARS = 128
const MAX_EXTENSIONS = 8

/**
 * Returns the client's capabilities that servers may need.
 *
 * @throws {RpcFault} `params_invalid` for a capability that is not an object
 */
export function parseClientCapabilities(given: unknown): ClientCapabilities {
  const all = objectAt(given, 'capabilities')
  const parsed: Record<string, JsonObject> = {}
  for (const [name, fields] of Object.entries(FIELDS)) {
    if (isAbsent(all[name])) continue
    const capability = objectAt(all[name], `capabilities.${name}`)
    const kept = fields.flatMap((field) => (isAbsent(capability[field]) ? [] : [[field, toKept(capability[field])]]))
    parsed[name] = Object.fromEntries(kept)
  }
  if (!isAbsent(all['extensions'])) parsed['extensions'] = parseExtensions(all['extensions'])
  return parsed
}

/** `null` is another spelling of an absent capability. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}

function toKept(value: unknown): unknown {
  return isObject(value) ? {} : value === true
}

function parseExtensions(given: unknown): JsonObject {
  const small = Object.entries(objectAt(given, 'capabilities.extensions')).filter(
    ([name, settings]) => name.length + toJsonText(settings).length <= MAX_EXTENSION_CHARS,
  )
  return Object.fromEntries(small.slice(0, MAX_EXTENSIONS))
}

function objectAt(value: unknown, path: string): JsonObject {
  if (!isObject(value)) throw new RpcFault('params_invalid', `params.${path} must be an object.`)
  return value
}

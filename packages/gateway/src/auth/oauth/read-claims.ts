import { isObject, type JsonObject } from '@toolgate/values/json'
import { TokenProblem } from './token-problem.ts'

const MAX_TEXT = 256
const MAX_LIST = 256

/**
 * Returns the value of a claim by its name, or else by a path such as `realm_access.roles`.
 *
 * A name may contain dots, such as `https://acme.com/roles` or the client `my.app` in `resource_access.my.app.roles`. The
 * longest name that the token has is taken.
 */
export function claimAt(claims: JsonObject, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path]
  for (let dot = path.lastIndexOf('.'); dot > 0; dot = path.lastIndexOf('.', dot - 1)) {
    const name = path.slice(0, dot)
    const inner = Object.hasOwn(claims, name) ? claims[name] : undefined
    if (isObject(inner)) return claimAt(inner, path.slice(dot + 1))
  }
  return undefined
}

/** Returns the names of the claims, for the log. The values are not shown. */
export function namesOf(claims: JsonObject): string {
  return Object.keys(claims).toSorted().join(', ')
}

export function textOf(claims: JsonObject, name: string): string | undefined {
  return checkText(Object.hasOwn(claims, name) ? claims[name] : undefined, name)
}

export function textAt(claims: JsonObject, path: string): string | undefined {
  return checkText(claimAt(claims, path), path)
}

function checkText(value: unknown, name: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value !== 'string' || value === '' || value.length > MAX_TEXT)
    throw new TokenProblem('claims', `the claim "${name}" is not a text of 1 to ${MAX_TEXT} characters`)
  return value
}

/** Returns a list of texts. A single text is split at its spaces. */
export function listAt(claims: JsonObject, path: string): readonly string[] {
  const value = claimAt(claims, path)
  return toList(typeof value === 'string' ? value.split(' ').filter((item) => item !== '') : value, path)
}

/**
 * Returns a list of texts. A single text is not split: names of groups may contain spaces, and "Former admin" is not
 * "admin".
 */
export function rolesAt(claims: JsonObject, path: string): readonly string[] {
  const value = claimAt(claims, path)
  return toList(typeof value === 'string' ? [value] : value, path)
}

function toList(items: unknown, path: string): readonly string[] {
  if (items === undefined) return []
  if (!Array.isArray(items) || items.length > MAX_LIST)
    throw new TokenProblem('claims', `the claim "${path}" is not a list of at most ${MAX_LIST} texts`)
  return [...new Set(items.map((item) => checkText(item, path) as string))]
}

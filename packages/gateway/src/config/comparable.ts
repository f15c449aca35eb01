import type { ServerConfig } from './config.ts'

/**
 * Returns a server's entry in a form that can be compared. The order of overlays matters, as later ones take
 * precedence.
 */
export function toComparable(server: ServerConfig): object {
  return Object.fromEntries(
    Object.entries(server).map(([key, value]) => [key, value instanceof Map ? [...(value as NamedEntries)] : value]),
  )
}

type NamedEntries = ReadonlyMap<string, unknown>

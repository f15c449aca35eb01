import type { ExitName } from '../exit.ts'
import { count } from '../render.ts'

/** Returns a text about the effect of missing records on an answer about recorded calls. */
export function missingText(missing: number): string {
  const [are, their] = missing === 1 ? ['is', 'its calls'] : ['are', 'their calls']
  return `${count(missing, 'record')} of the audit ${are} missing or cannot be read, so ${their} do not count; run: toolgate audit verify`
}

/** Returns the exit name of a command about recorded calls: `gap` if records are missing. */
export function endOf({ missing }: { readonly missing: number }): ExitName {
  return missing === 0 ? 'ok' : 'gap'
}

import type { ExitName } from '../exit.ts'
import { count } from '../render.ts'

/** Returns what missing records mean for an answer about recorded calls. */
export function missingText(missing: number): string {
  const [are, their] = missing === 1 ? ['is', 'its calls'] : ['are', 'their calls']
  return `${count(missing, 'record')} of the audit ${are} missing or cannot be read, so ${their} do not count; run: toolgate audit verify`
}

/** Returns how a command about recorded calls ends: with `gap` where records are missing. */
export function endOf({ missing }: { readonly missing: number }): ExitName {
  return missing === 0 ? 'ok' : 'gap'
}

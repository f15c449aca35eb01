import { setImmediate } from 'node:timers/promises'

/** Characters of text that take some milliseconds to parse or to write. */
const LARGE_CHARS = 256 * 1024

/** Whether work on a text should be split over several turns of the event loop. */
export function isLarge({ length }: { readonly length: number }): boolean {
  return length > LARGE_CHARS
}

/** Resolves in the next turn of the event loop: requests and timers that are due come first. */
export async function nextTurn(): Promise<void> {
  await setImmediate()
}

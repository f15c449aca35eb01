import type { OutcomeWord } from '@toolgate/core'
import type { Paint } from './io.ts'

const STYLES = { allow: 'green', ask: 'yellow', wait: 'cyan', deny: 'red' } as const satisfies Record<
  OutcomeWord,
  string
>

/** Returns the word of a decision in its colour. */
export function outcomeWord(paint: Paint, outcome: OutcomeWord): string {
  return paint(STYLES[outcome], outcome)
}

/** Returns `1 tool`, `3 tools`. */
export function count(n: number, noun: string, plural: string = `${noun}s`): string {
  return `${n} ${n === 1 ? noun : plural}`
}

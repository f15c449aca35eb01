import type { OutcomeWord } from '@toolgate/core'
import type { MayStillRow } from '@toolgate/gateway'
import type { Paint } from './io.ts'

const STYLES = { allow: 'green', ask: 'yellow', wait: 'cyan', deny: 'red' } as const satisfies Record<
  OutcomeWord,
  string
>

/** Returns the word of a decision in its colour. */
export function outcomeWord(paint: Paint, outcome: OutcomeWord): string {
  return paint(STYLES[outcome], outcome)
}

const ON: Readonly<Record<Exclude<MayStillRow['on'], 'now'>, string>> = {
  input: 'the input',
  run: 'the run',
  code: 'a hook',
}

/** Returns the dependencies of a decision: `depends on the input and a hook, not now`. Empty if it has none. */
export function dependsOn(mayStill: readonly MayStillRow[] = []): string {
  const parts = Object.entries(ON).flatMap(([on, text]) => (mayStill.some((one) => one.on === on) ? [text] : []))
  const depends = parts.length === 0 ? [] : [`depends on ${parts.join(' and ')}`]
  return [...depends, ...(mayStill.some(({ on }) => on === 'now') ? ['not now'] : [])].join(', ')
}

/** Returns the word of a decision in its colour, with its dependencies: `allow, depends on the input`. */
export function decisionWords(paint: Paint, outcome: OutcomeWord, mayStill?: readonly MayStillRow[]): string {
  const depends = dependsOn(mayStill)
  return depends === '' ? outcomeWord(paint, outcome) : `${outcomeWord(paint, outcome)}, ${depends}`
}

/** Returns `1 tool`, `3 tools`. */
export function count(n: number, noun: string, plural: string = `${noun}s`): string {
  return `${n} ${n === 1 ? noun : plural}`
}

import { sha256Hex } from '../hash.ts'
import type { Clock, MaybePromise, StateStore } from '../ports.ts'
import { ask } from './ask.ts'

/** Of a tool, so many tellings are remembered: one that never says the same twice must not fill the store. */
const MAX_TOLD = 32
/** Of so many tools this process remembers itself what it told; the store does all the same. */
const MAX_TOOLS = 100_000
/** How long the other processes leave a telling to the one that claimed it. */
const CLAIM_MS = 60_000

/** Tells something of a tool, unless it was told before. */
export type TellOnce = (tool: string, what: string, tell: () => void) => Promise<void>

/**
 * Gives a function that tells something of a tool once: not again after a restart, nor by another process.
 *
 * What cannot be remembered is told all the same. It is told before it is remembered: a process that dies between
 * the two tells it again.
 */
export function createTelling(state: StateStore, clock: Clock, deadlineMs: number): TellOnce {
  const here = new Map<string, Set<string>>()
  const asked = <T>(work: () => MaybePromise<T>, otherwise: T): Promise<T> =>
    new Promise((resolve) => ask(deadlineMs, work, (answer) => resolve('error' in answer ? otherwise : answer.value)))

  return async (tool, what, tell) => {
    const key = sha256Hex(what).slice(0, 16)
    if (!remember(here, tool, key)) return
    if (toldOf(await asked(() => state.get(TOLD + tool), undefined)).includes(key)) return
    const claim = `${CLAIM}${key}:${tool}`
    const claimed = await asked(() => state.add(claim, true, { expiresAt: clock.wallMs() + CLAIM_MS }), true)
    if (!claimed) return
    tell()
    const told = toldOf(await asked(() => state.get(TOLD + tool), undefined))
    await asked(() => state.set(TOLD + tool, [...told, key].slice(-MAX_TOLD)), undefined)
  }
}

const TOLD = 'pin-told:'
const CLAIM = 'pin-telling:'

/** Answers whether this is new to this process. */
function remember(here: Map<string, Set<string>>, tool: string, key: string): boolean {
  let told = here.get(tool)
  if (!told) {
    if (here.size >= MAX_TOOLS) here.clear()
    here.set(tool, (told = new Set()))
  }
  if (told.has(key)) return false
  told.add(key)
  for (const oldest of told) {
    if (told.size <= MAX_TOLD) break
    told.delete(oldest)
  }
  return true
}

function toldOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : []
}

import type { NoPlace, Place } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { type Cancelling, chain } from '@toolgate/values'
import type { Attempt, CheckResult, Stop } from './attempt.ts'
import { stoppedBy } from './deciding.ts'
import { waitWhile } from './lifetime.ts'
import { callerGone, noCapacity } from './refusals.ts'
import { isHeld } from './slots.ts'

/** Waits for a free slot before the call takes anything that others could use meanwhile. */
export function takeSlots(attempt: Attempt, tool: Tool): CheckResult {
  const { slots } = attempt.ports
  if (!slots) return undefined
  const caps = slots.capsOf(tool, attempt.view.caller)
  if (caps.length === 0) return undefined
  const held = waitWhile(attempt, tool, (cancelling) => slots.acquire(caps, { ...attempt.ports, cancelling }))
  return chain(held, (answer) => {
    if (!isHeld(answer)) return stoppedBy(attempt, tool, answer)
    attempt.held = [...attempt.held, answer]
    return undefined
  })
}

/** Takes a place, such as an instance of the server for this user. */
export function takePlace(attempt: Attempt, tool: Tool): CheckResult {
  const answer = attempt.ports.admission?.admit(tool, attempt.view.caller)
  if (!(answer instanceof Promise)) return tookPlace(attempt, answer)
  const waited = waitWhile(attempt, tool, (cancelling) => placeWhileWanted(answer, cancelling))
  return chain(waited, (taken) =>
    taken === 'gone' ? stoppedBy(attempt, tool, callerGone()) : tookPlace(attempt, taken),
  )
}

function tookPlace(attempt: Attempt, answer: Place | NoPlace | undefined): Stop | undefined {
  if (answer === undefined) return undefined
  if (!('release' in answer)) return { decision: noCapacity(answer) }
  attempt.held = [...attempt.held, answer]
  return undefined
}

/** Returns `gone` if the wait ends first. A place that comes later is released. */
async function placeWhileWanted(
  coming: Promise<Place | NoPlace | undefined>,
  cancelling: Cancelling,
): Promise<Place | NoPlace | 'gone' | undefined> {
  const { promise: left, resolve } = Promise.withResolvers<'gone'>()
  const unwatch = cancelling.onAbort(() => resolve('gone'))
  if (cancelling.aborted) resolve('gone')
  try {
    const first = await Promise.race([coming, left])
    if (first === 'gone')
      coming.then(
        (late) => late && 'release' in late && late.release(),
        () => undefined,
      )
    return first
  } finally {
    unwatch()
  }
}

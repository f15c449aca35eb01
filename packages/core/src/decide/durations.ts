const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/**
 * Returns when to try again, as people say it: `in 14 s`, `in 3 minutes`, `in about 24 hours`, `in about 3 days`. Rounded
 * up, so that nobody is too early. Structured fields have the exact number.
 */
export function spokenWait(ms: number): string {
  // A store's answer may be invalid.
  const left = ms > SECOND ? ms : SECOND
  if (left < 2 * MINUTE) return `in ${Math.ceil(left / SECOND)} s`
  if (left <= 2 * HOUR) return `in ${Math.ceil(left / MINUTE)} minutes`
  if (left <= 2 * DAY) return `in about ${Math.ceil(left / HOUR)} hours`
  return `in about ${Math.min(Math.ceil(left / DAY), 31)} days`
}

/** Returns the exact length of a window: `90 s`, `24 hours`, `7 days`. */
export function spokenWindow(ms: number): string {
  if (ms >= 2 * DAY && ms % DAY === 0) return `${ms / DAY} days`
  if (ms >= HOUR && ms % HOUR === 0) return ms === HOUR ? '1 hour' : `${ms / HOUR} hours`
  if (ms >= 2 * MINUTE && ms % MINUTE === 0) return `${ms / MINUTE} minutes`
  return `${ms / SECOND} s`
}

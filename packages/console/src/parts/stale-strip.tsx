import type { ReactElement } from 'react'
import { formatTime } from '../format.ts'
import { useHealth } from '../hooks.ts'

/** Says, while the gateway does not answer, that what is shown is from before. Always there, so that it is heard. */
export function StaleStrip(): ReactElement {
  const { isStale, sinceMs } = useHealth()
  return (
    <div role="status" className={isStale ? 'stale-strip' : undefined}>
      {isStale && (
        <p>
          <b>Not connected.</b> What you see is from {formatTime(sinceMs, Date.now())}. It is tried again by itself.
        </p>
      )}
    </div>
  )
}

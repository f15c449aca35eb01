/** The latest that work is done on a page that nobody sees: it has no frames. */
export const UNSEEN_MS = 1000

/** Returns a function that does work later, and just after a frame, so that it is done before the next one. */
export function afterFrame(delayMs: number): (work: () => void) => void {
  return (work) => {
    let isDone = false
    const once = (): void => {
      if (!isDone) work()
      isDone = true
    }
    setTimeout(() => {
      requestAnimationFrame(() => setTimeout(once, 0))
      setTimeout(once, UNSEEN_MS)
    }, delayMs)
  }
}

/** The longest delay of work on a hidden page, which has no frames, in milliseconds. */
export const UNSEEN_MS = 1000

/** Returns a function that runs work after a delay and right after a frame, so that it ends before the next frame. */
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

import { messageOf } from '../errors.ts'

/** How work that was waited for ended. */
export type Ending<T> =
  | { readonly end: 'answered'; readonly answer: T }
  | { readonly end: 'failed'; readonly error: unknown }
  | { readonly end: 'late' }

export interface Work<T> {
  start(signal: AbortSignal): T | PromiseLike<T>
  readonly timeoutMs: number
  /** Called once, at once where the work answers at once; not after `stop`. */
  readonly onEnd: (ending: Ending<T>) => void
  /** Called when the work itself is over, however late. */
  readonly onOver?: () => void
}

/** Starts work that has a deadline, and gives the way to end it before. What ignores its signal is left behind. */
export function startInTime<T>({ start, timeoutMs, onEnd, onOver }: Work<T>): () => void {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let isWaiting = true
  const end = (ending: Ending<T>) => {
    if (!isWaiting) return
    isWaiting = false
    clearTimeout(timer)
    onEnd(ending)
  }
  const over = (ending: Ending<T>) => {
    onOver?.()
    end(ending)
  }
  try {
    const answer = start(controller.signal)
    if (isThenable(answer)) {
      timer = setTimeout(() => {
        end({ end: 'late' })
        controller.abort(new Error(`no answer within ${timeoutMs / 1000} s`))
      }, timeoutMs)
      answer.then(
        (value) => over({ end: 'answered', answer: value }),
        (error: unknown) => over({ end: 'failed', error }),
      )
    } else {
      over({ end: 'answered', answer })
    }
  } catch (error) {
    over({ end: 'failed', error })
  }
  return () => {
    isWaiting = false
    clearTimeout(timer)
    controller.abort(new Error('nobody asks any more'))
  }
}

/** Gives the reason of an ending that is no answer, for people. */
export function whyNot(ending: Exclude<Ending<unknown>, { readonly end: 'answered' }>, timeoutMs: number): string {
  return ending.end === 'late' ? `it did not answer within ${timeoutMs / 1000} s` : messageOf(ending.error)
}

function isThenable<T>(answer: T | PromiseLike<T>): answer is PromiseLike<T> {
  return typeof answer === 'object' && answer !== null && typeof (answer as PromiseLike<T>).then === 'function'
}

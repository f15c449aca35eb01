/** The head of an answer. */
export interface AnswerHead {
  readonly status: number
  /** The media type without parameters, in lower case. A body that is an event stream has its type, whatever it says. */
  readonly contentType: string
  readonly sessionId: string | undefined
  readonly location: string | undefined
}

export interface HttpAnswer extends AnswerHead {
  /** The body; empty for an event stream. */
  readonly text: string
  /** The event id at which to resume an event stream that ended too early. */
  readonly lastEventId: string | undefined
  readonly retryMs: number | undefined
}

export const EVENT_STREAM = 'text/event-stream'

/** Whether an answer has what was asked for. Some servers create a result with 201, or accept it with 202. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

import type { StreamTextTransform, TextStreamPart, ToolSet } from 'ai'
import type { PendingState } from './pause.ts'

/** The end of a call that waited, as the SDK's stream tells it. */
export type ResumedPart = Extract<TextStreamPart<ToolSet>, { type: 'tool-result' | 'tool-error' }>

export function resumedResult({ callId, name, input }: PendingState, output: unknown): ResumedPart {
  return { type: 'tool-result', toolCallId: callId, toolName: name, input, output, dynamic: true }
}

export function resumedError({ callId, name, input }: PendingState, error: string): ResumedPart {
  return { type: 'tool-error', toolCallId: callId, toolName: name, input, error, dynamic: true }
}

/**
 * Returns a transform that puts the ends of calls that waited before the first step, where the SDK puts those of the calls
 * that its own approvals let run: a page that shows the call as waiting learns that it is over. A step's own content
 * begins after that, so no message has them twice.
 */
export function tellResumed(parts: readonly ResumedPart[]): StreamTextTransform<ToolSet> {
  let told = false
  return () =>
    new TransformStream<TextStreamPart<ToolSet>, TextStreamPart<ToolSet>>({
      transform(part, controller) {
        controller.enqueue(part)
        if (told || part.type !== 'start') return
        told = true
        for (const resumed of parts) controller.enqueue(resumed)
      },
    })
}

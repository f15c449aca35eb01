import { messageOf } from '@toolgate/core/internal'

export function isStream(output: unknown): output is AsyncIterable<unknown> {
  return typeof output === 'object' && output !== null && Symbol.asyncIterator in output
}

/** Gives what a call that takes one answer is told of a stream: its last item, as in the frameworks. */
export async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown
  for await (const item of stream) last = item
  return last
}

/** Gives what is told of a stream that broke off, in the words that the gate has for a tool that failed. */
export function failureText(name: string, error: unknown): string {
  return `${name} failed: ${messageOf(error)}`
}

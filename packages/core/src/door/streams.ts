import type { Cancelling } from '../cancelling.ts'
export type StreamEnd = { readonly kind: 'finished' } | { readonly kind: 'failed'; readonly error: unknown } | { readonly kind: 'abandoned'; readonly error?: unknown }
export function isStream(value: unknown): boolean { return typeof value === 'object' && value !== null && Symbol.asyncIterator in value }
export function watchStream(s: AsyncIterable<unknown>, o: { onEnd: (e: StreamEnd) => void; cancelling: Cancelling; maxChars: number }): unknown { void o; return s }

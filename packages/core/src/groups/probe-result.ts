import { messageOf } from '../errors.ts'
import type { Probe } from '../tools/groups.ts'

/** What a probe found out, read and checked. */
export interface ProbeResult {
  readonly available: boolean
  readonly reason?: string
  readonly detail?: string
  readonly suggestion?: string
}

const MAX_CHARS = 500
const WORKS: ProbeResult = Object.freeze({ available: true })

/** Reads what a probe answered. What is no answer says that the thing does not work. */
export function toProbeResult(answer: unknown, probe: Probe): ProbeResult {
  if (answer === true) return WORKS
  if (answer === false) return { available: false, reason: `${nameOf(probe)} says no` }
  if (typeof answer !== 'object' || answer === null || typeof (answer as ProbeResult).available !== 'boolean')
    return { available: false, reason: `${nameOf(probe)} gave nothing that is an answer` }
  const { available, reason, detail, suggestion } = answer as ProbeResult
  if (available) return WORKS
  return {
    available: false,
    reason: toText(reason) ?? `${nameOf(probe)} says no`,
    ...optional('detail', toText(detail)),
    ...optional('suggestion', toText(suggestion)),
  }
}

/** What was thrown is for people: it may quote anything. */
export function toFailedResult(error: unknown, probe: Probe): ProbeResult {
  return { available: false, reason: `${nameOf(probe)} failed`, ...optional('detail', toText(messageOf(error))) }
}

export function toLateResult(probe: Probe, timeoutMs: number): ProbeResult {
  return { available: false, reason: `${nameOf(probe)} did not answer within ${timeoutMs / 1000} s` }
}

function nameOf({ what = 'its probe' }: Probe): string {
  return what
}

function toText(text: unknown): string | undefined {
  if (typeof text !== 'string' || text === '') return undefined
  return (text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}…` : text).toWellFormed()
}

function optional<Key extends string>(key: Key, text: string | undefined): { readonly [K in Key]?: string } {
  return text === undefined ? {} : ({ [key]: text } as { readonly [K in Key]: string })
}

import { canonicalize } from '../canonical.ts'
import type { StateStore } from '../ports.ts'
import type { Definition } from '../tools/definition-hash.ts'
import { type Answer, ask } from './ask.ts'

/** The definition of a tool that its callers go by. */
export interface Pin {
  readonly hash: string
  /** Wall-clock milliseconds: when it was first seen, or accepted. */
  readonly since: number
  /** Who accepted it; absent where it was pinned at first sight. */
  readonly by?: string | undefined
}

export interface ReadPins {
  readonly pins: Map<string, Pin>
  /** Tools whose pin is there and says nothing that could be read. */
  readonly unreadable: ReadonlySet<string>
}

/**
 * Keeps pins in a state store: `pin:<tool id>` has the hash, `pin-definition:<hash>` what it is the hash of.
 *
 * Apart, so that reading all pins costs little. The definition is written first: a pin always has one.
 */
export interface PinStore {
  readAll(done: (answer: Answer<ReadPins>) => void): void
  /** Pins at first sight; gives the pin in force, which is another process's where that was faster. */
  add(tool: string, pin: Pin, definition: Definition, done: (answer: Answer<Pin | undefined>) => void): void
  /** Replaces the pin, whatever it was. */
  replace(tool: string, pin: Pin, definition: Definition, old: Pin | undefined): Promise<void>
  /** `undefined` where it is not kept any more, or cannot be read. */
  definition(hash: string): Promise<unknown>
}

/** A larger one is known by its hash alone: one tool must not be too much for the store of all. */
const MAX_DEFINITION_BYTES = 256 * 1024

const PIN = 'pin:'
const DEFINITION = 'pin-definition:'

export function createPinStore(state: StateStore, deadlineMs: number): PinStore {
  const later = <T>(work: () => T | Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      ask(deadlineMs, work, (answer) => ('error' in answer ? reject(answer.error as Error) : resolve(answer.value)))
    })
  return {
    readAll(done) {
      ask(
        deadlineMs,
        () => state.list(PIN),
        (answer) => done('error' in answer ? answer : { value: readPins(answer.value) }),
      )
    },
    add(tool, pin, definition, done) {
      const addPin = () =>
        ask(
          deadlineMs,
          () => state.add(PIN + tool, pin),
          (added) => {
            if ('error' in added) done(added)
            else if (added.value) done({ value: pin })
            else readOther()
          },
        )
      const readOther = () =>
        ask(
          deadlineMs,
          () => state.get(PIN + tool),
          (found) => done('error' in found ? found : { value: parsePin(found.value) }),
        )
      ask(
        deadlineMs,
        () => state.add(DEFINITION + pin.hash, toKept(definition)),
        (added) => ('error' in added ? done(added) : addPin()),
      )
    },
    async replace(tool, pin, definition, old) {
      await later(() => state.set(DEFINITION + pin.hash, toKept(definition)))
      await later(() => state.set(PIN + tool, pin))
      // The hash is of the id too, so no other tool has this definition. Left behind, it harms nobody.
      if (old && old.hash !== pin.hash) await later(() => state.take(DEFINITION + old.hash)).catch(() => undefined)
    },
    definition: async (hash) => (await later(() => state.get(DEFINITION + hash)).catch(() => undefined)) ?? undefined,
  }
}

function toKept(definition: Definition): Definition | null {
  return Buffer.byteLength(canonicalize(definition)) > MAX_DEFINITION_BYTES ? null : definition
}

function readPins(entries: readonly { readonly key: string; readonly value: unknown }[]): ReadPins {
  const pins = new Map<string, Pin>()
  const unreadable = new Set<string>()
  for (const { key, value } of entries) {
    const tool = key.slice(PIN.length)
    const pin = parsePin(value)
    if (pin) pins.set(tool, pin)
    else unreadable.add(tool)
  }
  return { pins, unreadable }
}

function parsePin(value: unknown): Pin | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { hash, since, by } = value as Readonly<Record<string, unknown>>
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash) || !Number.isFinite(since)) return undefined
  if (by !== undefined && typeof by !== 'string') return undefined
  return { hash, since: since as number, ...(by === undefined ? {} : { by }) }
}

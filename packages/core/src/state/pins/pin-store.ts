import { backgroundTimeout, type Outcome, runWithDeadline, sha256Hex, startTask } from '@toolgate/values'
import type { StateEntry, StateStore } from '../../ports/ports.ts'
import type { Definition } from '../../tools/definition-hash.ts'
import { isObject, toJsonText } from '@toolgate/values/json'

/** An accepted or first-seen definition, which later definitions are compared with. */
export interface Pin {
  readonly hash: string
  /** Wall-clock milliseconds when the definition was first seen or accepted. */
  readonly since: number
  /** Who accepted it; absent if it was pinned when first seen. */
  readonly by?: string | undefined
}

export interface PinnedDefinition {
  readonly pin: Pin
  readonly definition: Definition
}

export interface ReadPins {
  readonly pins: Map<string, Pin>
  /** Further accepted definitions, of tools that differ from user to user. */
  readonly more: Map<string, readonly Pin[]>
  /** Tools with an unreadable pin. */
  readonly unreadable: ReadonlySet<string>
  /** Whether there is an unreadable entry for unknown tools. Then no tool counts as new. */
  readonly isBroken: boolean
}

/**
 * Keeps pins in a state store.
 *
 * Tools that are seen together are written together, because a durable write costs milliseconds: `pin:seen:<batch>` has the
 * hashes, and `pin-definitions:<batch>` has the definitions. An accepted pin has `pin:tool:<id>` and
 * `pin-definition:<hash>`, and takes precedence. The definition is written first, so that a pin always has one. A further
 * accepted definition has its own entry, `pin:more:<hash>`, so that two processes can add to one set.
 */
export interface PinStore {
  /** Reads the entries with the prefix `PINS`. */
  read(entries: readonly StateEntry[]): ReadPins
  /** Writes first-seen definitions. If two processes saw a tool first, the earlier pin counts. */
  addAll(
    pinned: readonly (readonly [tool: string, sight: PinnedDefinition])[],
    done: (outcome: Outcome<void>) => void,
  ): void
  /** Replaces the pin, whatever it was. */
  replace(tool: string, pin: Pin, definition: Definition, old: Pin | undefined): Promise<void>
  /** Adds a pin to those of a tool. */
  add(tool: string, pin: Pin, definition: Definition): Promise<void>
  /** Returns the definition of a hash; `undefined` if it was deleted or is unreadable. */
  definition(hash: string): Promise<unknown>
}

/** The largest stored definition. A larger one is known only by its hash, so that one tool does not fill the store. */
const MAX_DEFINITION_BYTES = 256 * 1024
const MAX_BATCH_BYTES = 512 * 1024
const MAX_BATCH = 1000
const BATCH_KEPT_MS = 1000

/** The prefix of the keys of all pins. */
export const PINS = 'pin:'
const TOOL = `${PINS}tool:`
const SEEN = `${PINS}seen:`
const MORE = `${PINS}more:`
const DEFINITION = 'pin-definition:'
const DEFINITIONS = 'pin-definitions:'

export function createPinStore(state: StateStore, deadlineMs: number): PinStore {
  let batches: ReadonlyMap<string, string> = new Map()
  const later = <T>(work: () => T | Promise<T>) => runWithDeadline(work, deadlineMs)
  // Caches the last batch: when a server changes all of its tools, they are in one batch.
  const latest = new Map<string, Promise<unknown>>()
  const getBatch = (batch: string): Promise<unknown> => {
    let found = latest.get(batch)
    if (!found) {
      latest.set(batch, (found = later(() => state.get(DEFINITIONS + batch))))
      backgroundTimeout(() => latest.delete(batch), BATCH_KEPT_MS)
    }
    return found
  }
  const getDefinition = async (hash: string): Promise<unknown> => {
    const batch = batches.get(hash)
    const all = batch === undefined ? undefined : await getBatch(batch)
    if (isObject(all) && Object.hasOwn(all, hash)) return all[hash]
    return later(() => state.get(DEFINITION + hash))
  }
  return {
    read(entries) {
      const read = readPins(entries)
      batches = read.batches
      return read
    },
    addAll(pinned, done) {
      const writes = toBatches(pinned).flatMap(({ id, seen, definitions }) => [
        () => state.add(DEFINITIONS + id, definitions),
        () => state.add(SEEN + id, seen),
      ])
      const next = () => {
        const write = writes.shift()
        if (!write) return done({ value: undefined })
        startTask({ run: write, deadlineMs, onEnd: (outcome) => ('error' in outcome ? done(outcome) : next()) })
      }
      next()
    },
    async replace(tool, pin, definition, old) {
      await later(() => state.set(DEFINITION + pin.hash, toKept(definition)))
      await later(() => state.set(TOOL + tool, pin))
      // The hash includes the id, so no other tool has this definition. If it is left behind, it does no harm.
      if (old?.by !== undefined && old.hash !== pin.hash) {
        await later(() => state.take(DEFINITION + old.hash)).catch(() => undefined)
      }
    },
    async add(tool, pin, definition) {
      await later(() => state.set(DEFINITION + pin.hash, toKept(definition)))
      await later(() => state.set(MORE + pin.hash, { tool, ...pin }))
    },
    definition: async (hash) => (await getDefinition(hash).catch(() => undefined)) ?? undefined,
  }
}

interface PinBatch {
  /** A hash of the content, so that two processes that see the same tools write the same batch. */
  readonly id: string
  readonly seen: readonly (readonly [tool: string, hash: string, since: number])[]
  readonly definitions: Readonly<Record<string, Definition | null>>
}

function toBatches(pinned: readonly (readonly [string, PinnedDefinition])[]): readonly PinBatch[] {
  const batches: PinBatch[] = []
  let batch: (readonly [string, PinnedDefinition])[] = []
  let bytes = 0
  const close = () => {
    if (batch.length > 0) batches.push(toBatch(batch))
    batch = []
    bytes = 0
  }
  for (const sight of pinned) {
    const size = bytesOf(sight[1].definition)
    const kept = size > MAX_DEFINITION_BYTES ? 0 : size
    if (bytes + kept > MAX_BATCH_BYTES || batch.length === MAX_BATCH) close()
    bytes += kept
    batch.push(sight)
  }
  close()
  return batches
}

function toBatch(pinned: readonly (readonly [string, PinnedDefinition])[]): PinBatch {
  return {
    id: sha256Hex(pinned.map(([, { pin }]) => pin.hash).join(' ')),
    seen: pinned.map(([tool, { pin }]) => [tool, pin.hash, pin.since]),
    definitions: Object.fromEntries(pinned.map(([, { pin, definition }]) => [pin.hash, toKept(definition)])),
  }
}

function toKept(definition: Definition): Definition | null {
  return bytesOf(definition) > MAX_DEFINITION_BYTES ? null : definition
}

function bytesOf(definition: Definition): number {
  return Buffer.byteLength(toJsonText(definition))
}

interface ReadBatches extends ReadPins {
  /** The batch that contains each definition, by the hash of the definition. */
  readonly batches: ReadonlyMap<string, string>
}

function readPins(entries: readonly { readonly key: string; readonly value: unknown }[]): ReadBatches {
  const pins = new Map<string, Pin>()
  const unreadable = new Set<string>()
  const batches = new Map<string, string>()
  const more = new Map<string, readonly Pin[]>()
  let isBroken = false
  for (const { key, value } of entries) {
    if (!key.startsWith(SEEN)) continue
    const seen = parseSeen(value)
    if (!seen) isBroken = true
    for (const [tool, pin] of seen ?? []) {
      batches.set(pin.hash, key.slice(SEEN.length))
      const other = pins.get(tool)
      // In the order of keys, so that every process picks the same pin of two with the same time.
      if (!other || pin.since < other.since) pins.set(tool, pin)
    }
  }
  for (const { key, value } of entries) {
    if (key.startsWith(SEEN)) continue
    if (key.startsWith(MORE)) {
      // An unreadable entry accepts nothing.
      const added = parsePin(value)
      const of = isObject(value) ? value['tool'] : undefined
      if (added && typeof of === 'string') more.set(of, [...(more.get(of) ?? []), added])
      continue
    }
    const tool = key.slice(TOOL.length)
    const pin = key.startsWith(TOOL) ? parsePin(value) : undefined
    if (pin) pins.set(tool, pin)
    else unreadable.add(tool)
  }
  for (const tool of unreadable) pins.delete(tool)
  return { pins, more, unreadable, isBroken, batches }
}

function parseSeen(value: unknown): readonly (readonly [string, Pin])[] | undefined {
  if (!Array.isArray(value)) return undefined
  const seen: (readonly [string, Pin])[] = []
  for (const entry of value as readonly unknown[]) {
    const [tool, hash, since]: readonly unknown[] = Array.isArray(entry) ? entry : []
    const pin = parsePin({ hash, since })
    if (typeof tool !== 'string' || !pin) return undefined
    seen.push([tool, pin])
  }
  return seen
}

function parsePin(value: unknown): Pin | undefined {
  if (!isObject(value)) return undefined
  const { hash, since, by } = value
  if (typeof hash !== 'string' || !/^[0-9a-f]{64}$/.test(hash)) return undefined
  if (typeof since !== 'number' || !Number.isFinite(since)) return undefined
  if (by !== undefined && typeof by !== 'string') return undefined
  return { hash, since, ...(by === undefined ? {} : { by }) }
}

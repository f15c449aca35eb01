import { createHash } from 'node:crypto'
import type { MaybePromise, StateStore } from '@toolgate/core'
import type { PauseState } from './pause.ts'
import { fromStoredText, toStoredText } from './stored-text.ts'

/** Keeps pauses, each under the hash of what is kept: what was changed in the store is no pause any more. */
export interface PauseStore {
  /** Gives its id: 43 characters of base64url. */
  put(state: PauseState, expiresAt: number): Promise<string>
  /** Looks at it. */
  get(id: string): Promise<PauseState | undefined>
  /** Takes it: of any number who ask, one gets it. */
  take(id: string): Promise<PauseState | undefined>
}

/** Of each part. A store takes 1 MiB in UTF-8, and a character needs three bytes there, or two where JSON escapes it. */
const MAX_PART_CHARS = 300_000

/** 300 MB. Whoever changes the store cannot have any number of parts looked for. */
const MAX_PARTS = 1000

interface Head {
  readonly parts: number
  readonly text: string
}

export function createPauseStore(state: StateStore): PauseStore {
  /** What is in the head makes it one; the other parts are nothing without it. */
  const read = async (
    id: string,
    head: unknown,
    part: (key: string) => MaybePromise<unknown>,
  ): Promise<PauseState | undefined> => {
    if (!isHead(head)) return undefined
    const rest = await Promise.all(Array.from({ length: head.parts }, (_, i) => part(partKeyOf(id, i))))
    const text = [head.text, ...rest].join('')
    return idOf(text) === id ? (fromStoredText(text) as PauseState) : undefined
  }

  return {
    async put(pause, expiresAt) {
      const text = toStoredText(pause)
      const id = idOf(text)
      const [first = '', ...rest] = split(text)
      if (rest.length > MAX_PARTS)
        throw new RangeError(`the conversation is too long to be stored: ${text.length} characters`)
      for (const [i, part] of rest.entries()) await state.set(partKeyOf(id, i), part, { expiresAt })
      // Last, so that nobody finds a pause whose parts are not all there.
      await state.set(keyOf(id), { parts: rest.length, text: first } satisfies Head, { expiresAt })
      return id
    },
    get: async (id) => read(id, await state.get(keyOf(id)), (key) => state.get(key)),
    take: async (id) => read(id, await state.take(keyOf(id)), (key) => state.take(key)),
  }
}

function keyOf(id: string): string {
  return `planner:pause:${id}`
}

function partKeyOf(id: string, part: number): string {
  return `${keyOf(id)}:${part}`
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function isHead(value: unknown): value is Head {
  const { parts, text } = (value ?? {}) as Partial<Head>
  return typeof text === 'string' && Number.isInteger(parts) && (parts as number) >= 0 && (parts as number) <= MAX_PARTS
}

/** Between characters: half of one is no text that a store takes. */
function split(text: string): readonly string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + MAX_PART_CHARS, text.length)
    const last = text.charCodeAt(end - 1)
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--
    parts.push(text.slice(start, end))
    start = end
  }
  return parts
}

import * as z from 'zod'

/** The input that a server may request from the clients of its calls. */
export interface ServerMay {
  /** Whether it may ask people to fill in forms. */
  readonly elicit: boolean
  readonly sample: boolean
  readonly roots: boolean
  readonly log: boolean
  /** The origins of the URLs that it may ask people to open, such as `https://login.example.com`. */
  readonly open: readonly string[]
}

export const MAY_NOTHING: ServerMay = { elicit: false, sample: false, roots: false, log: false, open: [] }

const ASKS = ['elicit', 'sample', 'roots', 'log'] as const

const originSchema = z
  .string()
  .refine(isOrigin, 'an origin without a path, such as "https://login.example.com"')
  .describe('Such as https://login.example.com.')

export const maySchema = z
  .array(
    z.union([
      z.enum(ASKS),
      z
        .strictObject({ open: z.array(originSchema).min(1, 'at least one origin') })
        .describe('The origins of the URLs that it may ask people to open. Not for a shared server.'),
    ]),
  )
  .describe('What the server may ask the clients of its calls for: elicit (forms), log, sample, roots. Default: [].')

/** Returns the permissions that a written list grants. */
export function toMay(written: z.infer<typeof maySchema>): ServerMay {
  const words = new Set(written)
  const open = written.flatMap((entry) => (typeof entry === 'string' ? [] : entry.open.map(toOrigin)))
  const asks = Object.fromEntries(ASKS.map((word) => [word, words.has(word)])) as Record<(typeof ASKS)[number], boolean>
  return { ...asks, open }
}

/** Returns what a server may ask for, in words: `elicit`, `sample`, `open https://login.example.com`. */
export function mayWords(may: ServerMay = MAY_NOTHING): readonly string[] {
  return [...ASKS.filter((word) => may[word]), ...may.open.map((origin) => `open ${origin}`)]
}

function isOrigin(text: string): boolean {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '') return false
  return [url.origin, `${url.origin}/`].includes(text.toLowerCase())
}

function toOrigin(text: string): string {
  return new URL(text).origin
}

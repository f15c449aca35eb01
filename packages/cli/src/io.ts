import { styleText } from 'node:util'

/** Where a command writes. */
export interface Stream extends NodeJS.WritableStream {
  readonly isTTY?: boolean
  readonly columns?: number
}

/** All that a command touches of its process. */
export interface Io {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
}

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

/** Returns a painter for one stream: plain where it is no terminal, and where NO_COLOR (no-color.org) says so. */
export function painter(stream: Stream, env: Io['env']): Paint {
  const colours = stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
  return (style, text) => (colours ? styleText(style, text, { validateStream: false }) : text)
}

export function printLine(stream: Stream, text = ''): void {
  stream.write(`${text}\n`)
}

export function printJson(stream: Stream, value: unknown): void {
  stream.write(`${jsonText(value, 2)}\n`)
}

/** Returns JSON that says the same and writes nothing else on a terminal: JSON leaves C1 and what turns text as they are. */
export function jsonText(value: unknown, indent?: number): string {
  // Its own line breaks are the only ones: those in texts are escaped.
  return JSON.stringify(value, undefined, indent).split('\n').map(printable).join('\n')
}

/** C0, C1, and what turns or hides text, tag characters among it: a tool's description must not write on the terminal by itself. */
const UNPRINTABLE =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e0fff}]/gu

/** Returns text from elsewhere with its control characters spelt out. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, spelt)
}

/** As JSON does: one beyond U+FFFF is spelt by its two halves. */
function spelt(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

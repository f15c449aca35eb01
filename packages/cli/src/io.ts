import { styleText } from 'node:util'
import { toJsonText } from '@toolgate/values/json-text'

/** An output stream of a command. */
export interface Stream extends NodeJS.WritableStream {
  readonly isTTY?: boolean
  readonly columns?: number
}

/** The parts of the process that a command uses. */
export interface Io {
  readonly stdout: Stream
  readonly stderr: Stream
  readonly env: Readonly<Record<string, string | undefined>>
}

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

/** Returns a painter for one stream. It adds no colours if the stream is not a terminal, or with NO_COLOR (no-color.org). */
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

/** Returns equivalent JSON that is safe on a terminal. JSON itself does not escape C1 and bidirectional controls. */
export function jsonText(value: unknown, indent?: number): string {
  // Each line break belongs to the layout, because line breaks in texts are escaped.
  return toJsonText(value, indent).split('\n').map(printable).join('\n')
}

/**
 * Matches C0, C1 and bidirectional controls, and invisible characters such as tags, so that foreign text cannot control
 * the terminal.
 */
const UNPRINTABLE =
  /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e0fff}]/gu

/** Returns foreign text with its control characters escaped. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escapeCharacter)
}

/** Escapes a character as JSON does: one beyond U+FFFF becomes two surrogates. */
function escapeCharacter(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

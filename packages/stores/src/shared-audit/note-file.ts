import { createReadStream } from 'node:fs'
import { ToolgateError } from '@toolgate/core'

/**
 * A line of signatures: a key id of 4 bytes and at least the 64 bytes of an Ed25519 signature. A torn line is shorter.
 */
const SIGNATURE = /^\u2014 \S+ (?=.{92})[\w+/]+={0,2}$/

/** Yields the checkpoints in lines. A checkpoint that a crash left incomplete is skipped. */
async function* notesIn(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let text: string[] = []
  let signatures: string[] = []
  let isEnded = false
  for await (const line of lines) {
    if (isEnded && SIGNATURE.test(line)) {
      signatures.push(line)
      continue
    }
    if (isEnded) {
      if (signatures.length > 0) yield toNote(text, signatures)
      text = []
      signatures = []
    }
    // The only empty line of a checkpoint comes before its signatures.
    isEnded = line === '' && text.length > 0
    if (line !== '') text.push(line)
  }
  if (signatures.length > 0) yield toNote(text, signatures)
}

function toNote(text: readonly string[], signatures: readonly string[]): string {
  return [...text, '', ...signatures, ''].join('\n')
}

/** Returns the notes in a file. @throws an error of the file system */
export function readNotes(path: string): AsyncGenerator<string> {
  return notesIn(linesOf(path))
}

/** The longest line, in bytes, that is read into memory. Records and leaves are much shorter. */
const MAX_LINE = 64 * 1024 * 1024

/**
 * Returns the lines of a text file. Only a line feed ends a line: records may contain U+2028, which `node:readline`
 * also treats as a line break.
 *
 * @throws {ToolgateError} `audit_invalid` for a line that is too long for an audit
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  for await (const part of createReadStream(path, { highWaterMark: 1024 * 1024, encoding: 'utf8' })) {
    const lines = `${rest}${String(part)}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_LINE) throw new ToolgateError('audit_invalid', `A line of ${path} is too long for an audit.`)
    for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
  }
  if (rest !== '') yield rest
}
